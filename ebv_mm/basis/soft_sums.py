r"""What a softmax over all classes needs, kept while blocks of classes go by; no B x N logits are held.

Shapes: B embeddings z, N classes, d dimensions, K named classes.
"""

from typing import TYPE_CHECKING, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .threads import over_rows

if TYPE_CHECKING:
    from .products import Products

# a chunk of rows that threads take at a time
CPU_ROWS = 16


class SoftSums(NamedTuple):
    r"""Of the logits :math:`l_k = \langle z, w_k \rangle` of each row."""

    maximum: Tensor  # (B,) m, the largest logit
    total: Tensor  # (B,) sum_k exp(l_k - m)
    picked: Tensor  # (B, K) the logits of the named classes
    mean: Optional[Tensor]  # (B, d) sum_k exp(l_k - m) w_k

    @property
    def log_sum(self) -> Tensor:
        """In float64, so that a small loss at large logits is not lost in their difference."""
        return log_sum(self.maximum, self.total)


def log_sum(maximum: Tensor, total: Tensor) -> Tensor:
    return maximum.double() + total.double().log()


def soft_sums(products: 'Products', z: Tensor, named: Tensor, with_mean: bool) -> SoftSums:
    """The sums by blocks of classes (M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018)."""
    batch = len(z)
    out = SoftSums(
        z.new_empty(batch), z.new_empty(batch), z.new_empty(named.shape), torch.empty_like(z) if with_mean else None
    )
    for_each_chunk(products, batch, lambda rows: _sums_of_rows(products, z[rows], named[rows], _at(out, rows)))
    return out


def largest(products: 'Products', z: Tensor, k: int) -> Tuple[Tensor, Tensor, Tensor]:
    """The k largest logits (B, k), best first, their classes (B, k), and the log of the sum of exponentials (B,)."""
    batch = len(z)
    values = z.new_empty(batch, k)
    classes = torch.empty(batch, k, dtype=torch.int64, device=z.device)
    sums = torch.empty(batch, dtype=torch.float64, device=z.device)

    def work(rows: slice) -> None:
        values[rows], classes[rows], sums[rows] = _largest_of_rows(products, z[rows], k)

    for_each_chunk(products, batch, work)
    return values, classes, sums


def for_each_chunk(products: 'Products', batch: int, work) -> None:
    """Chunks of rows: on a CPU over threads, elsewhere in turn."""
    if products.device.type == 'cpu':
        over_rows(batch, CPU_ROWS, lambda part: [work(rows) for rows in products.row_chunks(part.start, part.stop)])
    else:
        for rows in products.row_chunks(0, batch):
            work(rows)


def _at(out: SoftSums, rows: slice) -> SoftSums:
    return SoftSums(*(None if item is None else item[rows] for item in out))


def _sums_of_rows(products: 'Products', z: Tensor, named: Tensor, out: SoftSums) -> None:
    """Fill the sums of some rows."""
    softmax = _OnlineSoftmax(z)
    scratch = products.scratch(len(z))
    if out.mean is not None:
        out.mean.zero_()
    for start, stop in products.class_blocks(len(z)):
        logits = products.inner(z, start, stop, scratch)
        places = named - start
        inside = (places >= 0) & (places < stop - start)
        values = logits.gather(1, places.clamp(0, stop - start - 1))
        out.picked.copy_(torch.where(inside, values, out.picked))
        shrink = softmax.add(logits)
        if out.mean is not None:
            out.mean.mul_(shrink[:, None]).add_(products.combine(logits, start, scratch))
    out.maximum.copy_(softmax.maximum)
    out.total.copy_(softmax.total)


def _largest_of_rows(products: 'Products', z: Tensor, k: int) -> Tuple[Tensor, Tensor, Tensor]:
    best, classes = z.new_empty(len(z), 0), torch.empty(len(z), 0, dtype=torch.int64, device=z.device)
    softmax = _OnlineSoftmax(z)
    scratch = products.scratch(len(z))
    for start, stop in products.class_blocks(len(z)):
        logits = products.inner(z, start, stop, scratch)
        values, places = logits.topk(min(k, stop - start), 1)
        values, places = torch.cat([best, values], 1), torch.cat([classes, places + start], 1)
        best, order = values.topk(min(k, values.shape[1]), 1)
        classes = places.gather(1, order)
        softmax.add(logits)
    return best, classes, log_sum(softmax.maximum, softmax.total)


class _OnlineSoftmax:
    """Maximum and sum of exponentials of logits that come in blocks; one for each row."""

    def __init__(self, z: Tensor) -> None:
        self.maximum = z.new_full((len(z),), -torch.inf)
        self.total = z.new_zeros(len(z))

    def add(self, logits: Tensor) -> Tensor:
        """Turn a block into exponentials relative to the new maximum, in place; return by what the old ones shrink."""
        maximum = torch.maximum(self.maximum, logits.amax(1))
        shrink = (self.maximum - maximum).exp_()
        logits.sub_(maximum[:, None]).exp_()
        self.total.mul_(shrink).add_(logits.sum(1))
        self.maximum = maximum
        return shrink
