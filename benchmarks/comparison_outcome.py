"""What the classifiers of benchmarks/comparison.py are asked at the end: unknown characters, nearest class means."""

from typing import Callable, Dict, Iterator, Tuple

import torch
from mmengine.runner import Runner
from torch import Tensor
from torch.nn.functional import normalize

Scores = Dict[str, float]


def auroc(known: Tensor, unknown: Tensor) -> float:
    """The probability that a known one scores above an unknown one; a tie counts half."""
    ordered = unknown.sort().values.contiguous()
    below, not_above = (torch.searchsorted(ordered, known, right=right) for right in (False, True))
    return float((below + not_above).double().mean() / (2 * len(unknown)))


def batches(runner: Runner, **dataset) -> Iterator[Tuple[Tensor, Tensor]]:
    """Images and labels of ``test_dataloader``, with some arguments of its data set changed."""
    config = runner.cfg.test_dataloader.to_dict()
    config['dataset'] = {**config['dataset'], **dataset}
    for batch in Runner.build_dataloader(config):
        data = runner.model.data_preprocessor(batch, False)
        yield data['inputs'], torch.cat([sample.gt_label for sample in data['data_samples']])


@torch.no_grad()
def unknown_scores(runner: Runner, unknown: int, skip: int) -> Scores:
    """How well the largest logit, for EBV the largest cosine, and the largest softmax tell known from unknown."""
    runner.model.eval()

    def largest(**dataset) -> Tensor:
        found = []
        for images, _ in batches(runner, **dataset):
            logits = runner.model(images, mode='tensor')
            found.append(torch.stack([logits.amax(1), logits.softmax(1).amax(1)]))
        return torch.cat(found, 1)

    pairs = zip(('logit', 'softmax'), largest(), largest(num_classes=unknown, skip=skip, every=1))
    return {name: round(auroc(known, other), 4) for name, known, other in pairs}


@torch.no_grad()
def nearest_means(runner: Runner, now: Callable[[], float]) -> Tuple[float, float, float, Callable[[int, int], Scores]]:
    """Seconds that the means take; top-1 and top-5, in percent, of the nearest one; what tells unknown ones by that.

    The mean of a class is that of the unit vectors of its training images, undistorted, whether it was trained or not.
    """
    runner.model.eval()

    def embedded(**dataset) -> Iterator[Tuple[Tensor, Tensor]]:
        for images, labels in batches(runner, **dataset):
            features = runner.model.head.pre_logits(runner.model.extract_feat(images))
            yield normalize(features), labels

    num_classes = runner.cfg.test_dataloader.dataset.num_classes
    means = None
    for vectors, labels in embedded(split='train', every=1):
        if means is None:
            means, begin = vectors.new_zeros(num_classes, vectors.shape[1]), now()
        means.index_add_(0, labels, vectors)
    means, seconds = normalize(means), now() - begin
    best = [(vectors @ means.T).topk(5) + (labels,) for vectors, labels in embedded()]
    hits = torch.cat([classes == labels[:, None] for _, classes, labels in best])
    known = torch.cat([cosines[:, 0] for cosines, _, _ in best])

    @torch.no_grad()
    def scores(unknown: int, skip: int) -> Scores:
        others = [(vectors @ means.T).amax(1) for vectors, _ in embedded(num_classes=unknown, skip=skip, every=1)]
        return {'logit': round(auroc(known, torch.cat(others)), 4)}

    return seconds, 100 * hits[:, 0].double().mean().item(), 100 * hits.any(1).double().mean().item(), scores
