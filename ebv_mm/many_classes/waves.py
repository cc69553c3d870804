"""Classes in waves: training begins with the first classes, and the others come later.

Fixed vectors make it free: the first d vectors of a Kerdock set are orthonormal, and the vectors of the classes that
come later are there from the beginning.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from mmengine.dist import get_dist_info, sync_random_seed
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.registry import DATA_SAMPLERS, HOOKS
from torch.utils.data import Sampler

from .classifiers import classifiers_of, restrict

Waves = Sequence[tuple[int, int | None]]


def check_waves(waves: Waves) -> list[tuple[int, int | None]]:
    """The waves as pairs (first iteration, classes present), checked; the last brings all classes."""
    waves = [tuple(wave) for wave in waves]
    begins = [wave[0] for wave in waves]
    counts = [math.inf if wave[1] is None else wave[1] for wave in waves]
    grows = all(a < b for a, b in zip(begins, begins[1:])) and all(a < b for a, b in zip(counts, counts[1:]))
    if not waves or begins[0] != 0 or not grows or counts[0] < 1:
        raise ValueError(
            f'waves = {waves}, but they are pairs (first iteration, number of classes) that begin with iteration 0 and '
            'grow in both, such as [(0, 1024), (2000, 4096), (4000, None)]; None stands for all classes'
        )
    if waves[-1][1] is not None:
        raise ValueError(f'waves = {waves} end with {waves[-1][1]} classes; let the last one be None, all classes')
    return waves


def present_at(waves: Waves, iteration: int, num_classes: int) -> int:
    """How many classes are present in an iteration."""
    present = next(count for begin, count in reversed(waves) if begin <= iteration)
    return num_classes if present is None else min(present, num_classes)


@DATA_SAMPLERS.register_module()
class WaveSampler(Sampler):
    """Shuffles the images of the classes present; every epoch has the length of the whole data set.

    Where few classes are present their images come several times in an epoch. Which images a batch has follows from the
    number of its iteration, so loaders may read ahead, and a resumed training goes on where it was. Needs a
    :class:`WaveHook` with the same waves, which restricts the loss.

    Args:
        dataset: With ``get_gt_labels()``, as mmpretrain's have.
        waves: Pairs (first iteration, number of classes), the last with None.
        batch_size: That of the loader, of each rank.
        seed: None: the same random one on all ranks.
    """

    def __init__(self, dataset, waves: Waves, batch_size: int, seed: int | None = None) -> None:
        self.waves, self.batch_size = check_waves(waves), batch_size
        self.rank, self.world_size = get_dist_info()
        self.seed = sync_random_seed() if seed is None else seed
        self.labels = np.asarray(dataset.get_gt_labels())
        self.num_classes = int(self.labels.max()) + 1
        self.num_samples = math.ceil(len(self.labels) / self.world_size)
        self.epoch = 0
        present = present_at(self.waves, 0, self.num_classes)
        if not (self.labels < present).any():
            raise ValueError(f'no image has a label below {present}, the first wave; begin with more classes')

    def __iter__(self) -> Iterator[int]:
        """Ranks take turns in one stream of indices, so that none sees what another does."""
        batches = math.ceil(self.num_samples / self.batch_size)
        first, left = self.epoch * batches, self.num_samples
        for begin, end in self._stretches(first, first + batches):
            size = min((end - begin) * self.batch_size, left)
            left -= size
            yield from self._shuffled(begin, size * self.world_size)[self.rank :: self.world_size].tolist()

    def _stretches(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Cut the iterations from first to last where a wave begins."""
        cuts = [first, *(begin for begin, _ in self.waves if first < begin < last), last]
        return zip(cuts, cuts[1:])

    def _shuffled(self, iteration: int, size: int) -> torch.Tensor:
        """So many indices of the classes present: all of them in some order, then all again."""
        generator = torch.Generator().manual_seed(self.seed + iteration)
        pool = torch.from_numpy(np.flatnonzero(self.labels < present_at(self.waves, iteration, self.num_classes)))
        rounds = math.ceil(size / len(pool))
        return torch.cat([pool[torch.randperm(len(pool), generator=generator)] for _ in range(rounds)])[:size]

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


@HOOKS.register_module()
class WaveHook(Hook):
    """Restricts the loss to the classes present, for a :class:`WaveSampler` with the same waves.

    The logits in training are those of the first n classes; in validation and testing those of all. For EBV layers and
    for FC layers alike, so that both can be compared under the same schedule.

    Args:
        waves: Pairs (first iteration, number of classes), the last with None.
    """

    priority = 'VERY_HIGH'

    def __init__(self, waves: Waves) -> None:
        self.waves = check_waves(waves)
        self._present = 0

    def before_train(self, runner) -> None:
        loader = runner.train_loop.dataloader
        sampler = loader.sampler
        if not isinstance(sampler, WaveSampler) or sampler.waves != self.waves:
            raise ValueError(
                f'WaveHook has the waves {self.waves}, but the sampler is {type(sampler).__name__} with '
                f'{getattr(sampler, "waves", "none")}; give train_dataloader '
                f"sampler=dict(type='WaveSampler', waves={self.waves}, batch_size={loader.batch_size})"
            )
        if sampler.batch_size != loader.batch_size:
            raise ValueError(
                f'WaveSampler has batch_size = {sampler.batch_size}, but its loader {loader.batch_size}; give both the '
                'same, or waves would not begin at their iterations'
            )
        if getattr(loader, 'drop_last', False):
            raise ValueError('WaveSampler counts the last batch of an epoch, which drop_last=True leaves out; keep it')
        preprocessor = getattr(runner.model, 'module', runner.model).data_preprocessor
        if getattr(preprocessor, 'batch_augments', None) is not None:
            raise ValueError('WaveHook cannot mix labels of all classes: leave out mixup and cutmix, or the waves')
        self._present = 0

    def before_train_iter(self, runner, batch_idx: int, data_batch=None) -> None:
        layers = classifiers_of(runner.model)
        total = max(count for _, count in layers)
        present = present_at(self.waves, runner.iter, total)
        if present != self._present:
            for layer, count in layers:
                restrict(layer, min(present, count) if present < total else None)
            print_log(f'{present} of {total} classes are present from iteration {runner.iter} on', logger='current')
            self._present = present

    def after_train(self, runner) -> None:
        for layer, _ in classifiers_of(runner.model):
            restrict(layer, None)
