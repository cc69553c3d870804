r"""Cross-entropy and prediction against a fixed basis, without the B x N logits.

Shapes: B embeddings, N classes, d dimensions, K of the classes named by a target.
"""

from functools import lru_cache
from typing import Callable, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor

from .basis import Basis, DenseProducts, Products
from .layers import scaled_direction
from .precision import autocast_off, working_dtype
from .tau_state import check_tau

AnyBasis = Union[Basis, Products, Tensor]
Target = Union[Tensor, Tuple[Tensor, Tensor]]

# a (B, N) target with at most this many classes in each row is read as those few: mixup and cutmix have two
FEW = 8
# rows whose named class vectors are made at a time
NAMED_ROWS = 256


class _Target(NamedTuple):
    r"""Coefficients :math:`c_{ik}` of the loss :math:`\sum_k c_{ik} (\log \sum_j \exp z_{ij} - z_{ik})`.

    They are ``shares`` at ``classes``, plus ``dense`` times the class weights, plus ``smooth`` times the class weights.
    """

    classes: Tensor  # (B, K)
    shares: Tensor  # (B, K)
    smooth: Optional[Tensor]  # (B,), None without smoothing
    dense: Optional[Tensor]  # (B, N), not scaled by the weights
    weight: Optional[Tensor]  # (N,)


def basis_cross_entropy(
    embedding: Tensor,
    target: Target,
    basis: AnyBasis,
    tau: float = 0.07,
    *,
    label_smoothing: float = 0.0,
    weight: Optional[Tensor] = None,
    ignore_index: int = -100,
    reduction: str = 'mean',
) -> Tensor:
    r"""``F.cross_entropy`` of the logits :math:`\langle v / \lVert v \rVert, w_k \rangle / \tau`, never holding all.

    One pass over blocks of classes keeps, as M. Milakov and N. Gimelshein (Online normalizer calculation for softmax,
    2018) do, the maximum and the sum of exponentials so far, and with them :math:`\sum_k p_k w_k`, which is all that
    the gradient with respect to the embedding needs; the basis is fixed and has none. A dense basis takes the same
    products as the dense loss, but its logits never leave the cache; a structured one has far cheaper products.

    Args:
        embedding: (B, d), the output v of the projection, not normalised.
        target: Class indices (B,); or shares of all classes (B, N); or shares of K classes each, as a pair (classes
            (B, K), shares (B, K)). Targets get no gradient.
        basis: A :class:`~ebv_mm.basis.Basis`, dense or structured; its ``products``; or an (N, d) matrix.
        tau: Temperature.
        label_smoothing, weight, ignore_index, reduction: As in ``torch.nn.functional.cross_entropy``.

    Returns:
        The loss in float32, or float64 for a float64 embedding; (B,) for the reduction 'none'.

    Example:
        >>> basis = make_basis(2000, 64, method='kerdock')
        >>> basis_cross_entropy(torch.randn(4, 64), torch.tensor([0, 1, 2, 1999]), basis).shape
        torch.Size([])
    """
    check_tau(tau)
    if reduction not in ('none', 'mean', 'sum'):
        raise ValueError(f"reduction = {reduction!r} is unknown; choose from 'none', 'mean', 'sum'")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f'label_smoothing = {label_smoothing!r}, but it is a share; give a number from 0 to 1')
    dtype = working_dtype(embedding)
    products = _products(basis, embedding, dtype)
    with autocast_off(embedding.device.type):
        z = products.enter(scaled_direction(embedding.to(dtype), tau))
        coefficients, divisor = _read_target(target, len(z), products, dtype, label_smoothing, weight, ignore_index)
        losses = _streamed()(z, products, *coefficients)
        if reduction == 'none':
            return losses
        return losses.sum() if reduction == 'sum' else losses.sum() / divisor


def basis_topk(embedding: Tensor, k: int, basis: AnyBasis, tau: float = 0.07) -> Tuple[Tensor, Tensor]:
    """The k largest softmax probabilities (B, k) and their classes (B, k), best first, over blocks of classes."""
    check_tau(tau)
    dtype = working_dtype(embedding)
    products = _products(basis, embedding, dtype)
    if not 1 <= k <= products.num_classes:
        raise ValueError(f'k = {k}, but there are {products.num_classes} classes; give a number from 1 to that')
    with torch.no_grad(), autocast_off(embedding.device.type):
        z = products.enter(scaled_direction(embedding.to(dtype), tau))
        logits, classes, log_sum = products.largest(z, k)
        return (logits - log_sum[:, None]).exp().to(dtype), classes


class _Streamed(torch.autograd.Function):
    """Losses (B,) of logits that are blocks of products with z; their gradient is made in the same pass."""

    @staticmethod
    def forward(ctx, z: Tensor, products: Products, *coefficients) -> Tensor:
        target, needs_gradient = _Target(*coefficients), ctx.needs_input_grad[0]
        sums = products.soft_sums(z, target.classes, needs_gradient)
        # in float64 for the reason of `log_sum`; there is one number for each row
        share = target.shares.sum(1, dtype=torch.float64)
        picked = (sums.picked * target.shares).sum(1, dtype=torch.float64)
        spread = _spread_sum(products, target, z)
        if spread is not None:
            share += spread[0]
            picked += (z.double() * spread[1]).sum(1)
        gradient = None
        if needs_gradient:
            gradient = sums.mean.mul_((share / sums.total).to(z.dtype)[:, None]).sub_(_named_sum(products, target))
            if spread is not None:
                gradient -= spread[1]
        ctx.save_for_backward(gradient)
        return (share * sums.log_sum - picked).to(z.dtype)

    @staticmethod
    def backward(ctx, grad_losses: Tensor):
        # torch's once_differentiable would let a second derivative pass in which this gradient is a constant
        if torch.is_grad_enabled():
            raise RuntimeError(
                'basis_cross_entropy has a first derivative only, but create_graph=True asks for more; take '
                'F.cross_entropy of the logits of an EBVLinear'
            )
        (gradient,) = ctx.saved_tensors
        return (gradient * grad_losses[:, None], *[None] * (1 + len(_Target._fields)))


def _apply_streamed(z: Tensor, products: Products, *coefficients) -> Tensor:
    return _Streamed.apply(z, products, *coefficients)


@lru_cache(maxsize=None)
def _streamed() -> Callable[..., Tensor]:
    """Keep torch.compile out: it would unroll the loops over blocks, which hold nothing that it could fuse."""
    compiler = getattr(torch, 'compiler', None)
    return _apply_streamed if compiler is None else compiler.disable(_apply_streamed)


def _named_sum(products: Products, target: _Target) -> Tensor:
    """The sum (B, d) of the vectors of the named classes, each times its share."""
    parts = [
        torch.einsum('bkd,bk->bd', products.rows(classes.flatten()).view(*classes.shape, products.dim), shares)
        for classes, shares in zip(target.classes.split(NAMED_ROWS), target.shares.split(NAMED_ROWS))
    ]
    return torch.cat(parts)


def _spread_sum(products: Products, target: _Target, like: Tensor) -> Optional[Tuple[Tensor, Tensor]]:
    """Of the coefficients of all classes, beyond the named ones: their sum (B,), and that of the vectors (B, d)."""
    if target.smooth is None and target.dense is None:
        return None
    share, vectors = torch.zeros(len(like), dtype=torch.float64, device=like.device), torch.zeros_like(like)
    if target.smooth is not None:
        weights = products.num_classes if target.weight is None else target.weight.sum(dtype=torch.float64)
        share += target.smooth * weights
        vectors += target.smooth[:, None] * _weighted_sum(products, target.weight, like)
    if target.dense is not None:
        for rows in products.row_chunks(0, len(like)):
            for start, stop in products.class_blocks(rows.stop - rows.start):
                shares = target.dense[rows, start:stop].to(like.dtype)
                if target.weight is not None:
                    shares = shares * target.weight[start:stop]
                share[rows] += shares.sum(1)
                vectors[rows] += products.combine(shares, start)
    return share, vectors


def _weighted_sum(products: Products, weight: Optional[Tensor], like: Tensor) -> Tensor:
    """The sum (d,) of all class vectors, each times its weight."""
    weight = like.new_ones(products.num_classes) if weight is None else weight
    return sum(products.combine(weight[None, start:stop], start)[0] for start, stop in products.class_blocks(1))


def _products(basis: AnyBasis, embedding: Tensor, dtype: torch.dtype) -> Products:
    if isinstance(basis, Tensor):
        basis = DenseProducts(basis.detach())
    products = basis if isinstance(basis, Products) else basis.products
    if embedding.ndim != 2 or embedding.shape[1] != products.dim:
        raise ValueError(
            f'embedding has shape {tuple(embedding.shape)}, but the basis needs (B, {products.dim}); give the output '
            'of the projection'
        )
    return products.to(embedding.device, dtype)


def _read_target(
    target: Target,
    batch: int,
    products: Products,
    dtype: torch.dtype,
    label_smoothing: float,
    weight: Optional[Tensor],
    ignore_index: int,
) -> Tuple[_Target, Union[int, Tensor]]:
    """The coefficients, and what the reduction 'mean' divides by."""
    num_classes = products.num_classes
    weight = None if weight is None else weight.detach().to(products.device, dtype)
    if weight is not None and weight.shape != (num_classes,):
        raise ValueError(f'weight has shape {tuple(weight.shape)}, but there are {num_classes} classes; give one each')
    dense = None
    if isinstance(target, Tensor) and target.ndim == 1 and not target.is_floating_point():
        target = target.long()  # in uint8 an ignore_index of -100 would be 156
        known = target != ignore_index
        classes = torch.where(known, target, 0)[:, None]
        shares = known[:, None].to(dtype)
        divisor = (shares[:, 0] if weight is None else shares[:, 0] * weight[classes[:, 0]]).sum()
        smooth = shares[:, 0] * (label_smoothing / num_classes) if label_smoothing else None
    else:
        if isinstance(target, Tensor):
            classes, shares, dense = _few_or_dense(target.detach(), num_classes, dtype)
        else:
            classes, shares = target[0].long(), target[1].detach().to(dtype)
        divisor = len(classes)
        smooth = shares.new_full((len(classes),), label_smoothing / num_classes) if label_smoothing else None
    if len(classes) != batch or classes.ndim != 2 or classes.shape != shares.shape:
        given = [tuple(part.shape) for part in ([target] if isinstance(target, Tensor) else target)]
        raise ValueError(f'target has shape {given}, but there are {batch} embeddings; give one row for each of them')
    if classes.numel() and not 0 <= classes.min() <= classes.max() < num_classes:
        raise IndexError(f'a target is outside of the classes 0 ... {num_classes - 1}; check the labels')
    shares = shares * (1 - label_smoothing)
    if weight is not None:
        shares = shares * weight[classes]
    if dense is not None and label_smoothing:
        dense = dense * (1 - label_smoothing)
    return _Target(classes, shares, smooth, dense, weight), divisor


def _few_or_dense(target: Tensor, num_classes: int, dtype: torch.dtype) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """(classes, shares, None) of a (B, N) target where each row has few classes; else (none, none, target)."""
    if target.shape[1:] != (num_classes,) or not target.is_floating_point():
        raise ValueError(
            f'target has shape {tuple(target.shape)} and dtype {target.dtype}, but there are {num_classes} classes; '
            f'give indices (B,), shares (B, {num_classes}), or a pair of both for few classes (B, K)'
        )
    none = target.new_zeros(len(target), 0, dtype=torch.int64)
    # (row, class) of the shares that are not zero; some rows at a time, to hold no mask of all
    found: List[Tensor] = []
    step = max(1, (1 << 22) // num_classes)
    for start in range(0, len(target), step):
        part = target[start : start + step]
        if int(torch.count_nonzero(part)) > FEW * len(part):
            return none, none.to(dtype), target
        found.append(part.nonzero() + torch.tensor([start, 0], device=target.device))
    row, column = torch.cat(found).T if found else target.new_empty(2, 0, dtype=torch.int64)
    counts = torch.bincount(row, minlength=len(target))
    if len(counts) and counts.max() > FEW:  # few on average, but not in each row
        return none, none.to(dtype), target
    place = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    classes = target.new_zeros(len(target), int(counts.max()) if len(counts) else 0, dtype=torch.int64)
    shares = torch.zeros(classes.shape, dtype=dtype, device=target.device)
    classes[row, place] = column
    shares[row, place] = target[row, column].to(dtype)
    return classes, shares, None
