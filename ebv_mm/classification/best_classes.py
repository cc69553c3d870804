from typing import Optional

from mmpretrain.structures import DataSample
from torch import Tensor


class BestClasses(DataSample):
    """A sample of which the few best classes are known: ``top_classes`` and ``top_scores``, best first.

    ``pred_score``, which mmpretrain's inferencer reads, is made when it is asked for: zero but for those. It is no
    field, so that metrics, which are given the fields, do not keep the scores of all classes of every image.
    """

    @classmethod
    def of(cls, sample: Optional[DataSample], scores: Tensor, classes: Tensor, num_classes: int) -> 'BestClasses':
        """The same sample, with its best classes."""
        out = cls() if sample is None else cls(metainfo=sample.metainfo, **dict(sample.items()))
        out.set_field(num_classes, 'num_classes', field_type='metainfo')
        out.set_field(scores, 'top_scores')
        out.set_field(classes, 'top_classes')
        return out.set_pred_label(classes[:1])

    @property
    def pred_score(self) -> Tensor:
        return self.top_scores.new_zeros(self.num_classes).scatter(0, self.top_classes, self.top_scores)
