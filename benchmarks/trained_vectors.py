"""EBV with vectors that are trained: what is left of EBV is the normalisation."""

from mmpretrain.registry import MODELS
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from ebv_mm.classification import EBVClsHead


@MODELS.register_module()
class TrainedVectorsClsHead(EBVClsHead):
    r"""A cosine classifier: :math:`\mathrm{logits}_k = \cos(A x + b, w_k) / \tau`, where the :math:`w_k` are trained.

    Everything else is :class:`~ebv_mm.classification.EBVClsHead`: the same tau, the same projection from the same
    beginning, and vectors that begin as the basis. Arguments as there, but loss and prediction take all
    logits: ``streaming`` and ``predict_topk``, which are of the fixed basis, have no effect.
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **{**kwargs, 'streaming': False, 'predict_topk': None})
        self.vectors = nn.Parameter(self.fc.vectors.clone())

    def forward(self, feats) -> Tensor:
        v = self.fc.project(self.pre_logits(feats))
        return linear(normalize(v), normalize(self.vectors)) / self.fc.tau
