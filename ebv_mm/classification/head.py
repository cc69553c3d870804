from typing import List, Optional, Tuple

from mmpretrain.models.heads import LinearClsHead
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch import Tensor

from ..basis_argument import BasisLike
from ..layers import EBVLinear
from ..losses import basis_topk
from ..many_classes.advice import warn_if_far
from .best_classes import BestClasses
from .streaming import StreamedLoss, is_sigmoid, smoothing_of

# from so many classes on, the logits of a batch are what takes the memory
MANY_CLASSES = 20_000


@MODELS.register_module()
class EBVClsHead(LinearClsHead):
    """``LinearClsHead`` with fixed class vectors: its ``fc`` is an :class:`~ebv_mm.layers.EBVLinear`.

    Args:
        num_classes: Number of classes.
        in_channels: Number of channels of the feature.
        basis, tau, norm_cfg, reserve: As in :class:`~ebv_mm.layers.EBVLinear`.
        balanced_init: Begin with a projection of norm 1 / tau, whose logits change in a step as those of a linear layer
            do. None: unless ``init_cfg`` asks for another beginning. docs/results.md has why.
        streaming: Compute the loss without the B x N logits; the values are the same. None: where there are many
            classes and the loss is one that can be (cross-entropy, label smoothing; no ``cal_acc``).
        predict_topk: Predict only so many best classes, as ``top_classes`` and ``top_scores`` for
            :class:`~ebv_mm.classification.StreamingAccuracy`, without the B x N scores. None: the scores of all, as
            the host does.
        init_cfg: How the host initialises the head. With None and ``balanced_init=False``, ``fc`` begins as torch's own
            linear layer, as in the authors' runs.
        kwargs: The other arguments of ``LinearClsHead``.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        *,
        basis: BasisLike,
        tau: float = 0.07,
        balanced_init: Optional[bool] = None,
        norm_cfg: Optional[dict] = None,
        streaming: Optional[bool] = None,
        predict_topk: Optional[int] = None,
        reserve: int = 0,
        init_cfg: Optional[dict] = None,
        **kwargs,
    ) -> None:
        if predict_topk is not None and not 1 <= predict_topk <= num_classes:
            raise ValueError(f'predict_topk = {predict_topk}, but there are {num_classes} classes; give 1 to that many')
        # The parent's own fc is thrown away: let it have one output, and not 100,000 that take 800 MB.
        super().__init__(min(num_classes, 1), in_channels, init_cfg=init_cfg, **kwargs)
        self.num_classes = num_classes
        balanced = init_cfg is None if balanced_init is None else balanced_init
        layer = dict(basis=basis, tau=tau, balanced_init=balanced, norm_cfg=norm_cfg, reserve=reserve)
        self.fc = EBVLinear(in_channels, num_classes, **layer)
        self.predict_topk = predict_topk
        possible = smoothing_of(self.loss_module) is not None and not self.cal_acc
        if streaming and not possible:
            raise ValueError(
                f'streaming=True, but {self.loss_module} with cal_acc={self.cal_acc} needs all logits; use '
                "CrossEntropyLoss or LabelSmoothLoss with reduction 'mean', and no cal_acc"
            )
        if is_sigmoid(self.loss_module):
            raise ValueError(
                f'{type(self.loss_module).__name__} is a loss of sigmoids, which need a prior, but EBVClsHead predicts '
                "by a softmax; use dict(type='EBVHead', head='LinearClsHead', layer='fc', prior=0.01, ...)"
            )
        self.streaming = possible and num_classes >= MANY_CLASSES if streaming is None else streaming
        if self.streaming:
            self.loss_module = StreamedLoss(self.loss_module)

    def init_weights(self) -> None:
        """Called where training begins: that is when d and tau matter, and not where a trained model is built."""
        super().init_weights()
        warn_if_far(self.num_classes, self.fc.dim, self.fc.tau)

    def loss(self, feats: Tuple[Tensor], data_samples: List[DataSample], **kwargs) -> dict:
        if not self.streaming:
            return super().loss(feats, data_samples, **kwargs)
        embedding = self.fc.project(self.pre_logits(feats))
        return self._get_loss(embedding, data_samples, classifier=self.fc, **kwargs)

    def predict(self, feats: Tuple[Tensor], data_samples: Optional[List[DataSample]] = None) -> List[DataSample]:
        if self.predict_topk is None:
            return super().predict(feats, data_samples)
        features = self.pre_logits(feats)
        if isinstance(self.fc, EBVLinear):
            best = basis_topk(self.fc.project(features), self.predict_topk, self.fc.products, self.fc.tau)
        else:  # folded
            best = self.fc(features).softmax(1).topk(self.predict_topk, 1)
        samples = data_samples or [None] * len(features)
        return [BestClasses.of(*each, self.num_classes) for each in zip(samples, *best)]
