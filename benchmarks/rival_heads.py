"""What people pick in place of a softmax over very many classes: a sample of the classes at each step."""

import math
from typing import List, Tuple

import torch
from mmengine.dist import get_world_size
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from mmpretrain.models.heads import LinearClsHead
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch import Tensor, nn
from torch.nn.functional import linear, normalize


@MODELS.register_module()
class SampledClsHead(LinearClsHead):
    r"""A linear classifier that is trained on a sample of its classes, in the manner of Partial FC.

    At each step the classes of the batch are taken, and others at random until there are
    :math:`K = \max(\lceil r N \rceil, m)`. The loss is the cross-entropy among these K, without a correction for the
    sampling; their rows of the matrix, and of AdamW's two moments, are all that the step reads and writes. AdamW
    counts the steps of the head, not those of a row, and a row that is not in the sample neither moves nor decays.
    Predictions are among all N classes.

    An et al., Partial FC: Training 10 Million Identities on a Single Machine (ICCV Workshops 2021), and Killing Two
    Birds with One Stone: Efficient and Robust Training of Face Recognition CNNs by Partial FC (CVPR 2022). They take
    cosines with a margin where this head takes a linear layer, so that it differs from FC in the sample alone;
    :class:`SampledCosineClsHead` takes cosines.

    Needs a :class:`SampledClassesHook`, and AdamW.

    Args:
        num_classes: Number N of classes.
        in_channels: Number of channels of the feature.
        rate: r.
        least: m; a batch can have as many classes as images, so give the batch size.
        kwargs: The other arguments of ``LinearClsHead``.
    """

    MOMENTS = ('exp_avg', 'exp_avg_sq')

    def __init__(self, num_classes: int, in_channels: int, *, rate: float = 0.1, least: int = 256, **kwargs) -> None:
        super().__init__(num_classes, in_channels, **kwargs)
        self.num_sampled = min(num_classes, max(math.ceil(rate * num_classes), least))
        self.fc.requires_grad_(False)
        self.sampled = nn.Linear(in_channels, self.num_sampled)
        for name, whole in self.fc.named_parameters():
            for moment in self.MOMENTS:
                self.register_buffer(f'{name}_{moment}', torch.zeros_like(whole))
        self.optimizer = None

    def loss(self, feats: Tuple[Tensor], data_samples: List[DataSample], **kwargs) -> dict:
        labels = torch.cat([sample.gt_label for sample in data_samples])
        self.classes, places = self.sample(labels)
        self._exchange(fetch=True)
        logits = self._sampled_logits(self.pre_logits(feats), present=len(places.unique()))
        return dict(loss=self.loss_module(logits, places, avg_factor=len(labels), **kwargs))

    def _sampled_logits(self, x: Tensor, present: int) -> Tensor:
        """(B, K), of which the first ``present`` classes are those of the batch."""
        return linear(x, self.sampled.weight, self.sampled.bias)

    def sample(self, labels: Tensor) -> Tuple[Tensor, Tensor]:
        """The classes of a step (K,), and the place of each label among them."""
        present, places = labels.unique(return_inverse=True)
        if len(present) > self.num_sampled:
            raise ValueError(
                f'a batch has {len(present)} classes, but only {self.num_sampled} are taken; set least={len(labels)}'
            )
        absent = torch.ones(self.num_classes, dtype=torch.bool, device=labels.device)
        absent[present] = False
        others = absent.nonzero()[:, 0]
        chosen = torch.randperm(len(others), device=labels.device)[: self.num_sampled - len(present)]
        return torch.cat([present, others[chosen]]), places

    @torch.no_grad()
    def _exchange(self, fetch: bool) -> None:
        """Copy the rows of the sampled classes, and their moments: from the whole, or back into it."""
        if self.optimizer is None:
            raise RuntimeError('SampledClsHead has no optimizer; add default_hooks.sampled.type=SampledClassesHook')
        for name, part in self.sampled.named_parameters():
            state = self.optimizer.state.get(part, {})
            pairs = [(self.fc.get_parameter(name), part)]
            pairs += [(self.get_buffer(f'{name}_{moment}'), state[moment]) for moment in self.MOMENTS if state]
            for whole, rows in pairs:
                if fetch:
                    torch.index_select(whole, 0, self.classes, out=rows.data)
                else:
                    whole[self.classes] = rows

    def after_step(self, *_) -> None:
        self._exchange(fetch=False)


@MODELS.register_module()
class SampledCosineClsHead(SampledClsHead):
    r"""As :class:`SampledClsHead`, with Partial FC's cosines, :math:`\cos(x, w_k) / \tau`, and without a margin.

    Args:
        tau: Temperature.
        args, kwargs: Those of ``SampledClsHead``.
    """

    def __init__(self, *args, tau: float, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.tau = tau

    def _sampled_logits(self, x: Tensor, present: int) -> Tensor:
        return self._cosines(x, self.sampled.weight)

    def _cosines(self, x: Tensor, rows: Tensor) -> Tensor:
        return linear(normalize(x), normalize(rows)) / self.tau

    def forward(self, feats: Tuple[Tensor]) -> Tensor:
        return self._cosines(self.pre_logits(feats), self.fc.weight)


@HOOKS.register_module()
class SampledClassesHook(Hook):
    """Acquaints a :class:`SampledClsHead` with the optimizer, whose moments belong to the rows that it takes."""

    priority = 'VERY_HIGH'

    def before_train(self, runner) -> None:
        head = (runner.model.module if is_model_wrapper(runner.model) else runner.model).head
        optimizer = runner.optim_wrapper.optimizer
        if get_world_size() > 1:
            raise RuntimeError('SampledClsHead takes other classes in each process, whose gradients DDP would average')
        if not isinstance(optimizer, torch.optim.AdamW):
            raise TypeError(f'SampledClsHead is trained by AdamW, but the optimizer is {type(optimizer).__name__}')
        head.optimizer = optimizer
        self._handle = optimizer.register_step_post_hook(head.after_step)

    def after_train(self, runner) -> None:
        self._handle.remove()
