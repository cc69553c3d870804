"""A trained model, from config and checkpoint and to both, and the images to try it on."""

from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Dict, Iterator, Optional

import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import Runner, save_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader, weights_to_cpu
from torch import Tensor, nn

from ..launch.configs import ConfigError, scope_of_model
from ..output import whole_file


def load_model(cfg: Config, checkpoint: str) -> nn.Module:
    """The model of a config with the weights of a checkpoint, all of them, for evaluation on the CPU."""
    init_default_scope(cfg.get('default_scope') or scope_of_model(cfg.model) or 'mmengine')
    if cfg.get('data_preprocessor') is not None:
        cfg.model.setdefault('data_preprocessor', cfg.data_preprocessor)
    model = revert_sync_batchnorm(MODELS.build(deepcopy(cfg.model)))  # some heads change their config
    content = CheckpointLoader.load_checkpoint(checkpoint, map_location='cpu')
    try:
        keys = model.load_state_dict(content.get('state_dict', content), strict=False)
    except RuntimeError as error:
        reason = ' '.join(str(error).split('\n\t')[1:2]).strip() or str(error)
        raise ConfigError(f"{checkpoint!r} does not fit the config's model ({reason}); give its own config") from error
    if keys.missing_keys:
        raise ConfigError(
            f'{checkpoint!r} has no {keys.missing_keys[0]}, and {len(keys.missing_keys)} entries less than the '
            "config's model in all; give its own config"
        )
    # with d = N, the projection of an EBV layer has the shape of FC's matrix
    ours = [key for key in keys.unexpected_keys if key.rpartition('.')[2] in ('basis', 'basis_recipe', 'tau')]
    if ours:
        raise ConfigError(f"{checkpoint!r} has {ours[0]}, of an EBV layer that the config's model lacks; give its own")
    model.dataset_meta = content.get('meta', {}).get('dataset_meta')
    return model.eval()


def save_model(cfg: Config, state: Dict[str, Tensor], stem: Path, dataset_meta: Optional[dict] = None) -> None:
    """Write a config, ``STEM.py``, and a checkpoint, ``STEM.pth``."""
    # not with_suffix: names have dots, as regnetx-1.6gf
    with whole_file(Path(f'{stem}.py')) as part:
        cfg.dump(part)
    with whole_file(Path(f'{stem}.pth')) as part:
        meta = {} if dataset_meta is None else dict(dataset_meta=dataset_meta)
        save_checkpoint(dict(state_dict=weights_to_cpu(state), meta=meta), str(part))


def test_batches(cfg: Config, count: int) -> Iterator[dict]:
    """The first test images of a config, one in a batch."""
    loader = dict(cfg.test_dataloader, batch_size=1, num_workers=0, persistent_workers=False)
    return islice(Runner.build_dataloader(loader, seed=0), count)


def image_of(model: nn.Module, batch: dict) -> torch.Tensor:
    """What the model's networks are given: normalised and padded by the host."""
    return model.data_preprocessor(batch, False)['inputs']
