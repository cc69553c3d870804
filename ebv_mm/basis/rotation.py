"""Random rotations of R^d that cost O(d log d) a vector instead of O(d^2), and no QR."""

from copy import copy

import torch
from torch import Tensor

BLOCK_ENTRIES = 1 << 23


def hartley(rows: Tensor) -> Tensor:
    r"""Multiply rows by the orthogonal, symmetric matrix :math:`(\cos 2\pi jk/d + \sin 2\pi jk/d) / \sqrt d`.

    R. V. L. Hartley, A more symmetrical Fourier analysis applied to transmission problems, Proc. IRE 30 (1942).
    """
    dim = rows.shape[-1]
    spectrum = torch.fft.rfft(rows, norm='ortho')
    # a real signal's upper half of frequencies mirrors the lower one, with the imaginary part negated
    mirrored = slice(1, dim - spectrum.shape[-1] + 1)
    upper = (spectrum.real + spectrum.imag)[..., mirrored].flip(-1)
    return torch.cat([spectrum.real - spectrum.imag, upper], -1)


class Rotation:
    """A seeded random rotation of R^d: H D P H D, with Hartley transforms H, random signs D, a permutation P.

    The two transforms with a permutation between them leave no trace of the coordinates of a sparse vector. All
    randomness is in whole numbers and all arithmetic in float64, so that every machine makes the same rotation.
    """

    def __init__(self, dim: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.signs = torch.randint(0, 2, (2, dim), generator=generator).mul_(2).sub_(1).double()
        self.order = torch.randperm(dim, generator=generator)
        self.inverse_order = self.order.argsort()

    def __call__(self, rows: Tensor) -> Tensor:
        """Rotate float64 rows of length d."""
        once = hartley(rows * self.signs[0])
        return hartley(once[:, self.order] * self.signs[1])

    def back(self, rows: Tensor) -> Tensor:
        """The inverse, which is the transpose, of rows on the device and in the precision of ``to``; differentiable."""
        once = (hartley(rows) * self.signs[1])[:, self.inverse_order]
        return hartley(once) * self.signs[0]

    def to(self, device: torch.device, dtype: torch.dtype) -> 'Rotation':
        out = copy(self)
        out.signs = self.signs.to(device, dtype)
        out.order, out.inverse_order = self.order.to(device), self.inverse_order.to(device)
        return out
