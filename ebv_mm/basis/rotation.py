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
        """Rotate rows of length d, on the device and in the precision of ``to``, float64 without it."""
        once = hartley(rows * self.signs[0])
        return hartley(once.index_select(1, self.order) * self.signs[1])

    def back(self, rows: Tensor) -> Tensor:
        """The inverse, which is the transpose."""
        once = (hartley(rows) * self.signs[1]).index_select(1, self.inverse_order)
        return hartley(once) * self.signs[0]

    def turned_back(self, rows: Tensor, chunk: int) -> Tensor:
        """As ``back``, ``chunk`` rows at a time; differentiable."""
        return _Turned.apply(rows, self, chunk, True)

    def to(self, device: torch.device, dtype: torch.dtype) -> 'Rotation':
        out = copy(self)
        out.signs = self.signs.to(device, dtype)
        out.order, out.inverse_order = self.order.to(device), self.inverse_order.to(device)
        return out


class _Turned(torch.autograd.Function):
    """Rows turned, or turned back; each is the gradient of the other.

    torch's own gradient of a transform of real numbers is one of complex numbers, and takes several times as long.
    """

    @staticmethod
    def forward(ctx, rows: Tensor, rotation: Rotation, chunk: int, back: bool) -> Tensor:
        ctx.rotation, ctx.chunk, ctx.back = rotation, chunk, back
        turn = rotation.back if back else rotation
        out = torch.empty_like(rows)
        for part, into in zip(rows.split(chunk), out.split(chunk)):
            into.copy_(turn(part))
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor):
        return _Turned.apply(gradient, ctx.rotation, ctx.chunk, not ctx.back), None, None, None
