"""EBV with the margin of ArcFace, which is between an embedding and its fixed vector as well as a trained one."""

import math
from typing import List, Tuple

import torch
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch import Tensor

from ebv_mm.classification import EBVClsHead


@MODELS.register_module()
class MarginEBVClsHead(EBVClsHead):
    r"""EBV whose loss takes :math:`\cos(\theta + m)` in place of the cosine :math:`\cos \theta` to the true vector.

    Beyond :math:`\theta + m = \pi`, where that would rise again, it takes :math:`\cos \theta - m \sin m`, as the host's
    ``ArcFaceClsHead`` does. Predictions are without the margin.

    Args:
        margin: m, in radians.
        args, kwargs: Those of ``EBVClsHead``.
    """

    def __init__(self, *args, margin: float = 0.2, **kwargs) -> None:
        super().__init__(*args, streaming=False, **kwargs)
        self.margin = margin

    def loss(self, feats: Tuple[Tensor], data_samples: List[DataSample], **kwargs) -> dict:
        logits = self(feats)
        target = torch.cat([sample.gt_label for sample in data_samples])[:, None]
        cosine = logits.gather(1, target) * self.fc.tau
        sine = (1 - cosine.square()).clamp_min(1e-6).sqrt()
        turned = cosine * math.cos(self.margin) - sine * math.sin(self.margin)
        beyond = cosine < -math.cos(self.margin)
        turned = torch.where(beyond, cosine - self.margin * math.sin(self.margin), turned)
        return self._get_loss(logits.scatter(1, target, turned / self.fc.tau), data_samples, **kwargs)
