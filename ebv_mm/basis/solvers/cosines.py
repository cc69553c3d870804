"""All cosines of N rows, in blocks that fit into memory."""

from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor

BLOCK_ENTRIES = 1 << 22


class Cosines:
    """The cosines of all rows, some rows at a time, in two buffers that are used again and again.

    Args:
        w: Rows of the shape, the type and the device that will be asked about.
        size: Rows in a block; None for as many as make blocks of about 4 million cosines.
    """

    def __init__(self, w: Tensor, size: Optional[int] = None) -> None:
        self.size = min(len(w), size or max(1, BLOCK_ENTRIES // len(w)))
        self.signed, self.absolute = w.new_empty(2, self.size, len(w))

    def __call__(self, w: Tensor, first: int = 0) -> Iterator[Tuple[slice, Tensor, Tensor]]:
        """Yield the numbers of the rows, their cosines, with 0 for themselves, and the absolute values of these."""
        for start in range(first, len(w), self.size):
            rows = slice(start, min(start + self.size, len(w)))
            count = rows.stop - rows.start
            signed = torch.mm(w[rows], w.T, out=self.signed[:count])
            signed.diagonal(start).zero_()
            yield rows, signed, torch.abs(signed, out=self.absolute[:count])

    def largest(self, w: Tensor, first: int = 0) -> float:
        return max(float(absolute.max()) for _, _, absolute in self(w, first))
