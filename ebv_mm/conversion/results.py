"""How well the final results of two models agree: classes of images, classes of pixels, boxes."""

from typing import Dict, List

import torch
from mmengine.config import Config
from torch import nn

from .models import in_scope

# A box that FC is this sure of, and how near EBV's must be to be the same.
SURE = 0.3
SAME_IOU = 0.9


@torch.no_grad()
def same_results(fc: nn.Module, ebv: nn.Module, cfg: Config, batches: List[dict]) -> str:
    """A sentence: the share of FC's results that EBV has too, on the same images."""
    count, name = COUNTS[cfg.get('default_scope')]
    same = total = 0
    with in_scope(cfg):
        for batch in batches:
            for ours, theirs in zip(ebv.test_step(batch), fc.test_step(batch)):
                hits, all_of_them = count(ours, theirs)
                same, total = same + hits, total + all_of_them
    share = f'{100 * same / total:.2f} % of {total}' if total else 'there are no'
    return f'final results that stay: {share} {name}'


def _images(ours, theirs) -> tuple:
    if 'pred_label' in theirs:
        return int(torch.equal(ours.pred_label, theirs.pred_label)), 1
    return 0, 0  # several tasks


def _pixels(ours, theirs) -> tuple:
    same = ours.pred_sem_seg.data == theirs.pred_sem_seg.data
    return int(same.sum()), same.numel()


def _boxes(ours, theirs) -> tuple:
    """FC's sure boxes; EBV has one if it gives the same class to a box in the same place."""
    from mmdet.structures.bbox import bbox_overlaps

    if 'pred_instances' not in theirs:
        return 0, 0  # panoptic
    fc, ebv = theirs.pred_instances, ours.pred_instances
    fc = fc[fc.scores > SURE]
    if not len(fc) or not len(ebv):
        return 0, len(fc)
    near = bbox_overlaps(fc.bboxes, ebv.bboxes) >= SAME_IOU
    return int((near & (fc.labels[:, None] == ebv.labels)).any(1).sum()), len(fc)


COUNTS: Dict[str, tuple] = {
    'mmpretrain': (_images, 'classes of images'),
    'mmseg': (_pixels, 'classes of pixels'),
    'mmdet': (_boxes, f'boxes of a score above {SURE}'),
}
