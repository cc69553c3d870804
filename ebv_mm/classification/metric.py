from typing import Sequence, Tuple

import torch
from mmpretrain.evaluation.metrics import Accuracy
from mmpretrain.registry import METRICS
from torch import Tensor


@METRICS.register_module()
class StreamingAccuracy(Accuracy):
    """``Accuracy`` that keeps the few best scores of each image, and not those of all classes until the end.

    Those would be 240 GB for 600,000 images of 100,000 classes.

    Args:
        args, kwargs: The arguments of ``Accuracy``.
    """

    def process(self, data_batch, data_samples: Sequence[dict]) -> None:
        """Store the best scores, and the place of the true class among them; -1 where it is not, which none equals."""
        for sample in data_samples:
            scores, classes = self._best(sample)
            places = torch.nonzero(classes == sample['gt_label'])
            place = int(places[0]) if len(places) else -1
            self.results.append(dict(pred_score=scores.cpu(), gt_label=torch.tensor([place])))

    def _best(self, sample: dict) -> Tuple[Tensor, Tensor]:
        most = max(self.topk)
        if 'top_classes' not in sample:
            return sample['pred_score'].topk(most)
        if len(sample['top_classes']) < most:
            raise ValueError(
                f"top-{most} accuracy needs more than the head's predict_topk = {len(sample['top_classes'])} classes; "
                f'set predict_topk={most}'
            )
        return sample['top_scores'][:most], sample['top_classes'][:most]
