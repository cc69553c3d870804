"""Models of a config on the CPU: built without downloads, fed with the config's test images or with noise."""

from contextlib import AbstractContextManager
from copy import deepcopy
from importlib import import_module
from typing import Dict, Iterator, List, Optional

import torch
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner import Runner
from torch import Tensor, nn

from .agreement import Logits
from .classifiers import ConversionError

NOISE_SIZE = 256
# of one call of one layer: a map of a detector has hundreds of thousands
MOST_FEATURES = 2048
RANDOM_FEATURES = 2000


def in_scope(cfg: Config) -> AbstractContextManager:
    """Let the names in a config mean those of its host, as the runner does, but only for a while."""
    return DefaultScope.overwrite_default_scope(cfg.get('default_scope') or 'mmengine')


def build(cfg: Config) -> nn.Module:
    """The model of a config, with whatever weights its constructor gives it."""
    model = deepcopy(cfg.model)
    if cfg.get('data_preprocessor') is not None:
        model.setdefault('data_preprocessor', cfg.data_preprocessor)
    try:
        with torch.random.fork_rng(devices=[]), in_scope(cfg):
            return revert_sync_batchnorm(MODELS.build(model)).eval()
    except Exception as error:
        line = ' '.join(str(error).split())[:300]
        raise ConversionError(f'the model of the config cannot be built ({type(error).__name__}: {line})') from error


def test_images(cfg: Config, count: int) -> Optional[List[dict]]:
    """The first test images of a config, as its model takes them; None where the data set is not there."""
    loader = cfg.get('test_dataloader')
    if loader is None:
        return None
    loader = {**loader.to_dict(), 'batch_size': 1, 'num_workers': 0, 'persistent_workers': False}
    if cfg.get('default_scope') == 'mmpretrain':
        loader.setdefault('collate_fn', dict(type='default_collate'))
    try:
        with in_scope(cfg):
            batches = iter(Runner.build_dataloader(loader, seed=0))
            return [next(batches) for _ in range(count)]
    except (OSError, StopIteration, AssertionError, RuntimeError):
        return None


def noise(cfg: Config, count: int, size: int = NOISE_SIZE) -> List[dict]:
    """Images of noise, with what each host has to be told about an image."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=generator)
    return [dict(inputs=[image], data_samples=[_sample(cfg.get('default_scope'), size)]) for image in images]


def _sample(scope: Optional[str], size: int):
    if scope == 'mmpretrain':
        return import_module('mmpretrain.structures').DataSample()
    shape = (size, size)
    meta = dict(img_shape=shape, ori_shape=shape, pad_shape=shape, batch_input_shape=shape, scale_factor=(1.0, 1.0))
    meta.update(padding_size=(0, 0, 0, 0), flip=False, img_id=0, img_path='')
    name = dict(mmdet='DetDataSample', mmseg='SegDataSample')[scope]
    return getattr(import_module(f'{scope}.structures'), name)(metainfo=meta)


@torch.no_grad()
def compare_on_images(fc: nn.Module, twins: Dict[str, nn.Module], batches: List[dict]) -> Dict[str, List[Logits]]:
    """Run the FC model, and each EBV layer on what the FC layer of that name gets."""
    seen: Dict[str, List[Logits]] = {name: [] for name in twins}
    handles = []
    for name, twin in twins.items():

        def look(layer, inputs, output, name=name, twin=twin) -> None:
            if len(output):
                seen[name].append(_some(_pair(output, inputs[0], twin)))

        handles.append(fc.get_submodule(name).register_forward_hook(look))
    try:
        for batch in batches:
            fc.test_step(batch)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@torch.no_grad()
def compare_on_random_features(layer: nn.Module, twin: nn.Module) -> List[Logits]:
    """Run an FC layer and its EBV layer on the same normally distributed features."""
    generator = torch.Generator().manual_seed(0)
    if isinstance(layer, nn.Linear):
        shape = (RANDOM_FEATURES, layer.in_features)
    else:
        shape = (RANDOM_FEATURES // 10, layer.in_channels, *layer.kernel_size)
    x = torch.randn(shape, generator=generator)
    return [_pair(layer(x), x, twin)]


def _pair(output: Tensor, x: Tensor, twin: nn.Module) -> Logits:
    ours = (twin(x) - twin.prior_logit) * twin.tau
    return Logits(*(_rows(logits, twin) for logits in (output, ours)))


def _rows(logits: Tensor, twin: nn.Module) -> Tensor:
    """(n, N): positions and anchors as features of their own."""
    if not isinstance(twin, nn.Linear):
        logits = logits.movedim(1, -1)
    return logits.reshape(-1, twin.num_vectors).double()


def _some(pair: Logits) -> Logits:
    if len(pair.fc) <= MOST_FEATURES:
        return pair
    chosen = torch.randperm(len(pair.fc), generator=torch.Generator().manual_seed(0))[:MOST_FEATURES]
    return Logits(pair.fc[chosen], pair.ebv[chosen])


def places(model: nn.Module, name: str) -> List[str]:
    """Where the part of a config stands in its model: there, or in the student and the teacher made of a detector."""
    first, _, rest = name.partition('.')
    if first == 'detector' and not hasattr(model, 'detector'):
        return [f'{part}.{rest}' for part in ('student', 'teacher') if hasattr(model, part)]
    return [name]


def named_layers(model: nn.Module, kinds: tuple) -> Iterator[tuple]:
    """(name, layer) of every layer of these kinds, by each of its names."""
    return ((name, part) for name, part in model.named_modules(remove_duplicate=False) if isinstance(part, kinds))
