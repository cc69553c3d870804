"""Two trained classifiers of mmpretrain, layer by layer, over the same images."""

import argparse
import shlex
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

import numpy as np
import torch
from mmengine.config import Config, ConfigDict
from mmengine.runner import Runner, load_checkpoint
from torch import Tensor, nn

from ..launch import load_config
from ..output import whole_file
from .cka import MinibatchCKA
from .features import choose_layers, layer_grams
from .heat_maps import HeatMap, draw_heat_maps

HOST = 'mmpretrain'


class Network(NamedTuple):
    """A trained model and those of its layers that are compared; ``embedding`` as in :func:`layer_grams`."""

    name: str
    model: nn.Module
    layers: Dict[str, nn.Module]
    embedding: bool = False

    def grams(self, images) -> Tensor:
        """The Gram matrices of the layers for a batch as it comes from the loader, in this model's own scaling."""
        inputs = self.model.data_preprocessor(dict(inputs=images), False)['inputs']
        if inputs.ndim != 4:
            raise ValueError(
                f'the loader gives inputs of shape {tuple(inputs.shape)}, but models need one picture of each image, '
                '(n, channels, height, width); name a config with such a test pipeline by --data CONFIG'
            )
        return layer_grams(self.layers, lambda: self.model(inputs, mode='tensor'), self.embedding)


class Comparison:
    """The similarities within each of two networks and across, from batch to batch."""

    def __init__(self, first: Network, second: Network) -> None:
        self.networks = (first, second)
        self.similarity = MinibatchCKA()

    def update(self, images) -> None:
        self.similarity.update(torch.cat([network.grams(images) for network in self.networks]))

    @property
    def batches(self) -> int:
        return self.similarity.batches

    def heat_maps(self) -> List[HeatMap]:
        """First with itself, second with itself, first with second."""
        cka, split = self.similarity.cka().numpy(), len(self.networks[0].layers)
        first, second = (network.name for network in self.networks)
        return [
            HeatMap(cka[:split, :split], first, first),
            HeatMap(cka[split:, split:], second, second),
            HeatMap(cka[:split, split:], first, second),
        ]

    def save(self, folder: Path, caption: str, **facts) -> None:
        """Write cka.png and cka.npz, which also holds the given facts; each whole or not at all."""
        maps = self.heat_maps()
        facts.update(zip(('first', 'second', 'across'), (heat_map.values for heat_map in maps)))
        facts.update(zip(('layers_first', 'layers_second'), (list(network.layers) for network in self.networks)))
        with whole_file(folder / 'cka.npz') as part:
            np.savez(part, hsic=self.similarity.hsic().numpy(), batches=self.batches, **facts)
        draw_heat_maps(maps, folder / 'cka.png', caption)

    def summary(self) -> List[Dict[str, str]]:
        """Mean similarity of the first tenth of the layers, and of the last one, with all others that have a value."""
        return [summary_row(heat_map) for heat_map in self.heat_maps()]


def summary_row(heat_map: HeatMap) -> Dict[str, str]:
    values = heat_map.values
    height, width = values.shape
    tenth = max(1, round(height / 10))
    means = {
        'first tenth with the rest': values[:tenth, max(1, round(width / 10)) :],
        'last with the rest': values[-1, :-1],
        'same layer': values.diagonal() if height == width else values[:0],
    }
    row = {'mean CKA': f'{heat_map.rows} - {heat_map.columns}'}
    return {**row, **{name: f'{np.nanmean(part):.3f}' if part.size else '-' for name, part in means.items()}}


def read_config(file: str, options: Optional[dict]) -> Config:
    """A config of mmpretrain with settings that override it."""
    arguments = dict(config=file, cfg_options=options, work_dir=None, launcher='none', local_rank=0)
    cfg = load_config(argparse.Namespace(**arguments))
    scope = cfg.get('default_scope')
    if scope != HOST:
        raise ValueError(
            f'{file} has default_scope = {scope!r}, but CKA is computed for classifiers of {HOST}; give one of its '
            'configs'
        )
    return cfg


def check_checkpoint(config: str, checkpoint: str) -> None:
    if '://' not in checkpoint and not Path(checkpoint).is_file():
        raise ValueError(
            f'checkpoint {checkpoint!r} does not exist; give the file that this has made: '
            f'python tools/train.py {shlex.quote(config)}'
        )


def build_loader(cfg: Config, file: str, batch_size: int, seed: int) -> torch.utils.data.DataLoader:
    """The test images in whole batches and, because they are mostly sorted by class, in random order."""
    if not cfg.get('test_dataloader'):
        raise ValueError(f'{file} has no test_dataloader, but its images are to be used; name another by --data CONFIG')
    changes = dict(batch_size=batch_size, drop_last=True, sampler=dict(type='DefaultSampler', shuffle=True))
    loader = ConfigDict({**cfg.test_dataloader, **changes})
    loader.pop('batch_sampler', None)
    loader = Runner.build_dataloader(loader, seed=seed)
    if len(loader) == 0:
        raise ValueError(
            f'the {len(loader.dataset)} test images of {file} do not fill a batch of {batch_size}; '
            'give a smaller --batch-size'
        )
    return loader


def same_images(configs: Sequence[Config], data: Config) -> bool:
    """Whether all configs would test on these images, cut in the same way."""
    return all(cfg.get('test_dataloader', {}).get('dataset') == data.test_dataloader.dataset for cfg in configs)


def load_network(
    name: str, cfg: Config, checkpoint: str, pattern: Optional[str], device: str, embedding: bool
) -> Network:
    """A model with the weights of a checkpoint; ``pattern`` as in :func:`choose_layers`."""
    from mmpretrain.apis import get_model

    model = get_model(cfg, pretrained=False)
    layers = choose_layers(model, pattern)
    try:
        # Weights that stay random would make a picture that looks plausible.
        load_checkpoint(model, checkpoint, map_location='cpu', strict=True)
    except Exception as error:  # a file that is no pickle may end in any
        reason = ' '.join(str(error).split())[:400]
        raise ValueError(
            f'checkpoint {checkpoint!r} cannot be loaded into the model of {cfg.filename}; give the .pth file of a '
            f'training, and the config it was trained with ({type(error).__name__}: {reason})'
        ) from error
    return Network(name, model.to(device).eval(), layers, embedding)
