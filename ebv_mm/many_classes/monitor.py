"""Says whether training has begun: cosines, spread of the logits, and a sentence if the loss stands at log n."""

import logging
import math
from collections import deque

import torch
from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from torch import Tensor, nn

from ..layers import EBVLinear
from ..losses import basis_topk
from .advice import LEAST_SPREAD, MOST_SPREAD, NORM, advise, tau_for
from .classifiers import ebv_layers

# losses whose mean is compared with log n
JUDGED = 50


@HOOKS.register_module()
class EBVMonitorHook(Hook):
    r"""Logs, as other scalars of the training, what a classifier's EBV layer does with a batch.

    ==================  =====================================================================
    ``ebv/true_cosine``   mean cosine of the embedding to its class vector
    ``ebv/other_cosine``  mean cosine to the best other vector of the classes present
    ``ebv/spread``        standard deviation of the logits; 1 / (tau sqrt(d)) at the beginning
    ``ebv/norm``          mean of |v|
    ``ebv/common``        |mean of v / |v||^2: near 1, all images have nearly the same embedding
    ==================  =====================================================================

    If the loss is still near log n, that of a guess, after ``patience`` iterations, it warns once and says what to
    change.

    Args:
        interval: Iterations between two looks.
        patience: Iterations after which training should have begun; a new wave of classes begins them anew.
        margin: As near to log n, in nats, has not begun.
        rows: At most so many images of a batch are looked at.
    """

    priority = 'NORMAL'  # before the logger, which is BELOW_NORMAL

    def __init__(self, interval: int = 50, patience: int = 300, margin: float = 0.2, rows: int = 64) -> None:
        if min(interval, patience, rows) < 1:
            raise ValueError(f'interval = {interval}, patience = {patience}, rows = {rows}; each must be at least 1')
        self.interval, self.patience, self.margin, self.rows = interval, patience, margin, rows
        self._embedding: Tensor | None = None
        # of the last iterations, where they are: reading one would make a GPU wait
        self._losses: deque[Tensor] = deque(maxlen=JUDGED)
        self._present, self._since, self._judged, self._warned = 0, 0, False, False
        self._handle = None

    def before_train(self, runner) -> None:
        layers = ebv_layers(_unwrapped(runner.model))
        if len(layers) != 1:
            raise ValueError(
                f'EBVMonitorHook watches one EBV layer, but the model has {len(layers)}; take the hook out'
            )
        self.layer = layers[0]
        if not isinstance(self.layer, EBVLinear):
            raise TypeError(
                f'EBVMonitorHook watches the classifier of images, an EBVLinear, but the model has an '
                f'{type(self.layer).__name__}; take the hook out'
            )
        self._handle = self.layer.norm.register_forward_hook(self._keep)
        self._since = runner.iter

    def after_train(self, runner) -> None:
        if self._handle is not None:
            self._handle.remove()

    def _keep(self, module: nn.Module, inputs: tuple, embedding: Tensor) -> None:
        if self.layer.training:
            self._embedding = embedding.detach()

    def after_train_iter(self, runner, batch_idx: int, data_batch=None, outputs: dict | None = None) -> None:
        present = self.layer.products.num_classes
        if present != self._present:
            self._present, self._since, self._judged = present, runner.iter, False
            self._losses.clear()
        if outputs is not None and 'loss' in outputs:
            self._losses.append(outputs['loss'].detach())
        if self.every_n_train_iters(runner, self.interval) and self._embedding is not None:
            labels = torch.cat([sample.gt_label for sample in data_batch['data_samples']])
            for name, value in look(self.layer, self._embedding[: self.rows], labels[: self.rows]).items():
                runner.message_hub.update_scalar(f'train/ebv/{name}', value)
        self._embedding = None
        if not (self._judged or self._warned) and runner.iter + 1 - self._since >= self.patience:
            self._judge()

    def _judge(self) -> None:
        self._judged = True
        if not self._losses:
            return
        loss = float(torch.stack(tuple(self._losses)).mean())
        if loss < math.log(self._present) - self.margin:
            return
        self._warned = True
        print_log(
            f'training has not begun: the loss of the last {len(self._losses)} iterations is {loss:.2f}, that of a '
            f'guess among {self._present} classes {math.log(self._present):.2f}; {remedy(self.layer, self._present)}',
            logger='current',
            level=logging.WARNING,
        )


@torch.no_grad()
def look(layer: nn.Module, embedding: Tensor, labels: Tensor) -> dict[str, float]:
    """What the monitor logs, of embeddings (B, d) and their classes (B,)."""
    products = layer.products.to(embedding.device, embedding.dtype)
    z = products.enter(nn.functional.normalize(embedding, dim=1))
    named = products.rows(labels.to(z.device))
    true = (z * named).sum(1)
    # of the two best classes, the one that is not the true one
    classes = basis_topk(embedding, min(2, products.num_classes), products, layer.tau)[1]
    other = torch.where(classes[:, 0] == labels.to(z.device), classes[:, -1], classes[:, 0])
    cosine = (z * products.rows(other)).sum(1)
    # the mean square of <z, w_k> over k is z's share of a frame, 1 / d if the basis is tight
    sample = torch.randint(products.num_classes, (256,), generator=torch.Generator().manual_seed(0))
    logits = z @ products.rows(sample.to(z.device)).T / layer.tau
    return dict(
        true_cosine=float(true.mean()),
        other_cosine=float(cosine.mean()),
        spread=float(logits.std()),
        norm=float(embedding.norm(dim=1).mean()),
        common=float(z.mean(0).square().sum()),
    )


def remedy(layer: nn.Module, present: int) -> str:
    """What to change, in one clause, the most likely first."""
    advice = advise(num_classes=layer.num_vectors, features=layer.weight.shape[1])
    parts = []
    spread = 1 / (layer.tau * math.sqrt(layer.dim))
    if present > layer.dim and not LEAST_SPREAD <= spread <= MOST_SPREAD:
        parts.append(f'set tau to {tau_for(layer.dim):g} (now {layer.tau:g}, first logits spread by {spread:.2g})')
    if layer.dim < advice.dim:
        parts.append(f'take dim = {advice.dim} (now {layer.dim})')
    if present > layer.dim:
        parts.append(f'begin with {layer.dim} classes by a WaveHook')
    if isinstance(layer.norm, nn.Identity):
        parts.append(f'give the head norm_cfg={NORM}')
    parts.append('try a third and three times the learning rate')
    return ', or '.join(parts)


def _unwrapped(model: nn.Module) -> nn.Module:
    return model.module if is_model_wrapper(model) else model
