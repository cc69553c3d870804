from typing import Optional

from mmpretrain.structures import DataSample
from torch import Tensor


class BestClasses(DataSample):
    """A sample of which the few best classes are known: ``top_classes`` and ``top_scores``, best first.

    ``pred_score``, which mmpretrain's inferencer and metrics read, is made when it is asked for: zero but for those. It
    is no field, so that nothing keeps the scores of all classes of every image that does not ask for them.
    """

    @classmethod
    def of(cls, sample: Optional[DataSample], scores: Tensor, classes: Tensor, num_classes: int) -> 'BestClasses':
        """The same sample, with its best classes."""
        out = cls() if sample is None else cls(metainfo=sample.metainfo, **dict(sample.items()))
        out.set_field(num_classes, 'num_classes', field_type='metainfo')
        # of its own, because a pickle of one row of a batch would hold the whole batch
        out.set_field(scores.clone(), 'top_scores')
        out.set_field(classes.clone(), 'top_classes')
        return out.set_pred_label(classes[:1].clone())

    def to_dict(self) -> dict:
        """The fields, as metrics are given them."""
        return _Fields(self, super().to_dict())

    @property
    def pred_score(self) -> Tensor:
        return self.top_scores.new_zeros(self.num_classes).scatter(0, self.top_classes, self.top_scores)


class _Fields(dict):
    """The fields of a sample, and ``pred_score`` for who asks for it, as mmpretrain's ``Accuracy`` does."""

    def __init__(self, sample: BestClasses, fields: dict) -> None:
        super().__init__(fields)
        self._sample = sample

    def __contains__(self, key: object) -> bool:
        return key == 'pred_score' or super().__contains__(key)

    def __missing__(self, key: str) -> Tensor:
        if key == 'pred_score':
            return self._sample.pred_score
        raise KeyError(key)
