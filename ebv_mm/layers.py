r"""The idea, written once: trainable projection -> l2-normalise -> fixed basis -> / tau.

Shapes: N classes, d dimensions, C input channels. The inherited ``weight`` and ``bias`` are the projection into R^d;
the fixed vectors are a buffer called ``basis``, a name that no host initialises, decays or trains.
"""

import math
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple, Optional, Union

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn
from torch.nn import functional

from .basis import (
    Basis,
    BasisError,
    DenseProducts,
    Products,
    StructuredBasis,
    closed_form_basis,
    from_recipe,
    load_basis,
    make_command,
    size_in_name,
)

BasisLike = Union[str, Path, dict, Basis]

NORM_EPS = 1e-12
# Two bases closer than this, entry by entry, are the same one up to the linear algebra of the machine.
SAME_BASIS_TOLERANCE = 1e-5


class _FixedBasis(NamedTuple):
    """A ``basis`` argument made concrete; ``missing`` is the error to raise while there are no vectors yet.

    What a checkpoint stores is ``stored``: the vectors, or the recipe of structured ones.
    """

    stored: Tensor
    name: str
    dim: int
    missing: Optional[str] = None
    structure: Optional[Products] = None


def _resolve(basis: BasisLike, num_classes: int) -> _FixedBasis:
    """The first ``num_classes`` vectors of a basis given as a path, as the arguments of a closed form, or as itself."""
    # whatever the default device is, which torch knows from 2.0 on
    with torch.device('cpu') if hasattr(torch.device, '__enter__') else nullcontext():
        fixed = _made_concrete(basis, num_classes)
    if fixed.dim < 2:
        raise BasisError(
            f'{fixed.name} has one dimension, in which every embedding is +1 or -1 and passes no gradient; '
            f'take at least two: {make_command(num_classes, 2)}'
        )
    return fixed


def _made_concrete(basis: BasisLike, num_classes: int) -> _FixedBasis:
    if isinstance(basis, Basis):
        name = basis.source
    elif isinstance(basis, dict):
        name = f'basis {dict(basis)}'
        basis = closed_form_basis(**basis)
    elif isinstance(basis, (str, Path)):
        name = f'basis {str(basis)!r}'
        if not Path(basis).exists():
            return _await_checkpoint(basis, num_classes)
        basis = load_basis(basis)
    else:
        raise TypeError(
            f'basis is a {type(basis).__name__}, but a layer takes the path of a basis file or a dict such as '
            f'dict(num_classes={num_classes}, dim={num_classes})'
        )
    if basis.num_classes < num_classes:
        raise BasisError(
            f'{name} has {basis.num_classes} vectors, but the layer needs {num_classes}, one for each of its outputs; '
            f'make one with: {make_command(num_classes, basis.dim)}'
        )
    if isinstance(basis, StructuredBasis):
        basis = basis.first(num_classes)
        return _FixedBasis(_encode(basis.recipe), name, basis.dim, structure=basis.products)
    return _FixedBasis(basis.vectors[:num_classes].clone(), name, basis.dim)


def _encode(recipe: str) -> Tensor:
    """Bytes as float32, which survive whatever is done to buffers: broadcasts, averages over ranks, half precision."""
    return torch.tensor(list(recipe.encode()), dtype=torch.float32)


def _decode(stored: Tensor) -> str:
    # rounded: GPUs average over n ranks by a factor of 1 / n, which may end just below a whole number
    return bytes(stored.round().to('cpu', torch.uint8).tolist()).decode()


def _await_checkpoint(path: Union[str, Path], num_classes: int) -> _FixedBasis:
    """Stand in for a missing file, because a trained model brings its basis in its checkpoint."""
    size = size_in_name(path)
    if size is not None and size[0] < num_classes:
        raise BasisError(
            f'basis {str(path)!r} does not exist, and by its name would have {size[0]} vectors, but the layer needs '
            f'{num_classes}; name a file of at least {num_classes} vectors'
        )
    command = make_command(*(size or (num_classes, 'DIM')), path)
    missing = f'basis {str(path)!r} does not exist, and no checkpoint has brought one; make it with: {command}'
    # A name that tells no size leaves d to the checkpoint; until then any d will do.
    dim = size[1] if size else max(num_classes, 2)
    return _FixedBasis(torch.full((num_classes, dim), math.nan), f'basis {str(path)!r}', dim, missing)


def check_tau(tau: float) -> None:
    if not (isinstance(tau, (int, float)) and 0 < tau < math.inf):
        raise ValueError(f'tau = {tau!r}, but the temperature must be a positive number; the paper uses 0.07')


def scaled_direction(v: Tensor, tau: float, dim: int = -1) -> Tensor:
    r""":math:`v / (\lVert v \rVert \tau)`, whose products with the class vectors are the logits; zero for a zero v."""
    return v * inverse_norm(v, tau, dim)


def inverse_norm(v: Tensor, tau: float, dim: int = -1) -> Tensor:
    r""":math:`1 / (\lVert v \rVert \tau)`, keeping the dimension; zero for a zero v, which has no direction."""
    norm = torch.linalg.vector_norm(v, dim=dim, keepdim=True)
    return torch.where(norm > NORM_EPS, 1 / (norm.clamp_min(NORM_EPS) * tau), 0)


def working_dtype(*tensors: Tensor) -> torch.dtype:
    """At least float32: a cosine divided by a tau of 0.007 leaves float16 with errors of several tenths."""
    return torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else torch.float32


def autocast_off(device_type: str) -> AbstractContextManager:
    """Switch autocast off on the device, where the device knows autocast at all."""
    try:
        return torch.autocast(device_type, enabled=False)
    except RuntimeError:
        return nullcontext()


class _StructuredProduct(torch.autograd.Function):
    """All cosines of a structured basis; the gradient goes to the embedding only, and no intermediate is kept."""

    @staticmethod
    def forward(ctx, z: Tensor, products: Products) -> Tensor:
        ctx.products = products
        out = z.new_empty(len(z), products.num_classes)
        scratch = products.scratch(len(z))
        for rows in products.row_chunks(len(z)):
            for start, stop in products.class_blocks(rows.stop - rows.start):
                out[rows, start:stop] = products.cosines(z[rows], start, stop, scratch)
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor):
        return _StructuredSum.apply(gradient, ctx.products), None


class _StructuredSum(torch.autograd.Function):
    """The transpose of :class:`_StructuredProduct`; each is the gradient of the other, as often as is asked for."""

    @staticmethod
    def forward(ctx, coefficients: Tensor, products: Products) -> Tensor:
        ctx.products = products
        out = coefficients.new_zeros(len(coefficients), products.dim)
        for rows in products.row_chunks(len(coefficients)):
            for start, stop in products.class_blocks(rows.stop - rows.start):
                out[rows] += products.combine(coefficients[rows, start:stop], start)
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor):
        return _StructuredProduct.apply(gradient, ctx.products), None


class _BasisClassifier:
    r"""What :class:`EBVLinear` and :class:`EBVConv2d` share, beside their projection.

    .. math:: v = A x + b, \qquad \mathrm{logits}_k = \frac{\langle v / \lVert v \rVert, w_k \rangle}{\tau}

    Everything here runs in float32 at least, also under autocast and in a half-precision model: a cosine is divided by
    a tau as small as 0.007, which would multiply float16's rounding to several tenths of a logit. A zero ``v`` has no
    direction: its logits are 0 and it passes no gradient.
    """

    _channel_dim: int

    def _fix(self, fixed: _FixedBasis, tau: float, balanced_init: bool) -> None:
        check_tau(tau)
        self.register_buffer('basis', fixed.stored.to(self.weight.device))
        self.structure = fixed.structure
        self.basis_name = fixed.name
        self.missing = fixed.missing
        self.tau = tau
        self.balanced_init = balanced_init
        self.init_weights()

    def init_weights(self) -> None:
        r"""Balance the projection, if that was asked for; hosts call this after their own initialisation.

        The logits :math:`\langle v, w_k \rangle / (\tau \lVert v \rVert)` change as those of a linear layer do where
        :math:`\lVert v \rVert = 1 / \tau`, which for features of root mean square 1 is a projection of that Frobenius
        norm. The smaller it is, the larger are its gradients, and the farther each of them turns it.
        """
        if self.balanced_init:
            nn.init.normal_(self.weight, std=1 / (self.tau * math.sqrt(self.weight.numel())))
            if self.bias is not None:
                nn.init.zeros_(self.bias)

    @property
    def num_vectors(self) -> int:
        """N. Not called num_classes: hosts compare that of every module with the data set's, without background."""
        return self.basis.shape[0] if self.structure is None else self.structure.num_classes

    @property
    def dim(self) -> int:
        return self.basis.shape[1] if self.structure is None else self.structure.dim

    @property
    def vectors(self) -> Tensor:
        """The class vectors (N, d); those of a structured basis are made now."""
        if self.structure is None:
            return self.basis
        return from_recipe(_decode(self.basis)).vectors.to(self.basis.device)

    @property
    def products(self) -> Products:
        """Inner products with the class vectors, blockwise, dense or structured."""
        return DenseProducts(self.basis) if self.structure is None else self.structure

    def project(self, x: Tensor) -> Tensor:
        """The embedding v = A x + b, in float32 at least."""
        if self.missing is not None:
            raise FileNotFoundError(self.missing)
        dtype = working_dtype(x, self.weight)
        with autocast_off(x.device.type):
            bias = None if self.bias is None else self.bias.to(dtype)
            return self._project(x.to(dtype), self.weight.to(dtype), bias)

    def forward(self, x: Tensor) -> Tensor:
        v = self.project(x)
        with autocast_off(x.device.type):
            z = scaled_direction(v, self.tau, self._channel_dim)
            if self.structure is None:
                return self._cosines(z, self.basis.to(v.dtype))
            z = z.movedim(self._channel_dim, -1)
            products = self.structure.to(v.device, v.dtype)
            logits = _StructuredProduct.apply(products.enter(z.reshape(-1, self.dim)), products)
            return logits.view(*z.shape[:-1], self.num_vectors).movedim(-1, self._channel_dim)

    def _apply(self, fn, *args, **kwargs):
        """Move the basis with the module, but keep its precision: ``.half()`` would bend the angles."""
        exact = self.basis
        super()._apply(fn, *args, **kwargs)
        if self.basis.dtype != exact.dtype:
            self.basis = exact.to(self.basis.device)
        return self

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors) -> None:
        """Let the basis of a checkpoint win: the checkpoint's projection was trained against it."""
        key = f'{prefix}basis'
        loaded = state_dict.get(key)
        if loaded is not None:
            if loaded.ndim == 1:
                if not self._adopt_recipe(_decode(loaded), key):
                    size = f'copying {_decode(loaded)}, the current model has {self.num_vectors} x {self.dim}'
                    errors.append(f'size mismatch for {key}: {size}.')
                    state_dict = {**state_dict, key: self.basis}
            elif self.missing is not None and loaded.shape[0] == self.num_vectors:
                self._resize(loaded.shape[1])
                self.missing = None
            elif self.structure is None and torch.equal(self.basis.to(loaded), loaded):
                state_dict = {**state_dict, key: self.basis}  # the same, perhaps in half precision
            elif loaded.shape == (self.num_vectors, self.dim):
                self._adopt_matrix(loaded, key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)

    def _adopt_matrix(self, loaded: Tensor, key: str) -> None:
        if self.structure is None:
            same = torch.allclose(loaded.to(self.basis), self.basis, rtol=0, atol=SAME_BASIS_TOLERANCE)
        else:
            same = False
            self.structure, self.basis = None, self.basis.new_empty(loaded.shape)
        if not same:
            self._warn_of_other(key)

    def _adopt_recipe(self, recipe: str, key: str) -> bool:
        """Make the basis of a recipe, verified, unless it has another size than the layer."""
        if self.structure is not None and recipe == _decode(self.basis):
            return True
        basis = from_recipe(recipe)
        if basis.num_classes != self.num_vectors or (self.missing is None and basis.dim != self.dim):
            return False
        if self.missing is not None:
            self._resize(basis.dim)
            self.missing = None
        else:
            self._warn_of_other(key)
        self.structure = basis.products
        self.basis = _encode(recipe).to(self.basis.device)
        return True

    def _warn_of_other(self, key: str) -> None:
        warnings.warn(
            f"the checkpoint's {key!r} differs from the configured {self.basis_name}; the checkpoint's is used, "
            'because its projection was trained against it',
            stacklevel=2,
        )

    def _resize(self, dim: int) -> None:
        """Make room for a checkpoint's basis; the projection begins anew, in case the checkpoint has none that fits."""
        if dim != self.dim:
            for tensor in filter(torch.is_tensor, (self.weight, self.bias)):
                tensor.data = tensor.new_empty(dim, *tensor.shape[1:])
            self.reset_parameters()
            self.init_weights()
        self.basis = self.basis.new_empty(self.num_vectors, dim)

    def extra_repr(self) -> str:
        return f'{super().extra_repr()}, num_classes={self.num_vectors}, tau={self.tau}'


@MODELS.register_module()
class EBVLinear(_BasisClassifier, nn.Linear):
    r"""A linear classifier with fixed class vectors; takes the place of ``nn.Linear(in_features, num_classes)``.

    Args:
        in_features: Size C of each input.
        out_features: Number N of classes, hence of outputs. (The attribute of this name becomes d, the projection's.)
        bias: Whether the projection has a bias.
        basis: Path of a basis file; or a dict of arguments of :func:`~ebv_mm.basis.closed_form_basis`, such as
            ``dict(num_classes=81, dim=81)``; or a :class:`~ebv_mm.basis.Basis`. Its first N vectors are used. With
            ``structured=True`` in the dict the matrix is never made, and a checkpoint holds its recipe only.
        tau: Temperature.
        balanced_init: Begin with a projection of Frobenius norm 1 / tau. False: leave it to the host, as in the
            authors' runs; docs/results.md says when that is too small. A host that initialises the layers of its heads
            itself overrides it, such as ``FCNMaskHead``; ``EBVMaskHead`` does not.

    Shape:
        - Input: (\*, C). Output: (\*, N), float32 at least.

    Example:
        >>> layer = EBVLinear(256, 81, basis=dict(num_classes=81, dim=81))
        >>> layer(torch.randn(4, 256)).shape
        torch.Size([4, 81])
    """

    _channel_dim = -1

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        basis: BasisLike,
        tau: float = 0.07,
        balanced_init: bool = False,
        **factory_kwargs,
    ) -> None:
        fixed = _resolve(basis, out_features)
        super().__init__(in_features, fixed.dim, bias, **factory_kwargs)
        self._fix(fixed, tau, balanced_init)

    def _project(self, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        return functional.linear(x, weight, bias)

    def _cosines(self, unit: Tensor, basis: Tensor) -> Tensor:
        return functional.linear(unit, basis)

    def _resize(self, dim: int) -> None:
        super()._resize(dim)
        self.out_features = dim


@MODELS.register_module()
class EBVConv2d(_BasisClassifier, nn.Conv2d):
    r"""A convolutional classifier with fixed class vectors; takes the place of ``nn.Conv2d(C, num_classes, 1)``.

    Args:
        in_channels: Number C of input channels.
        out_channels: Number N of classes, hence of outputs. (The attribute of this name becomes d, the projection's.)
        kernel_size: Size of the projection's kernel.
        basis, tau, balanced_init: As in :class:`EBVLinear`.
        args, kwargs: The other arguments of ``nn.Conv2d``, for the projection.

    Shape:
        - Input: (B, C, H, W). Output: (B, N, H', W'), float32 at least.

    Example:
        >>> layer = EBVConv2d(256, 80, 1, basis=dict(num_classes=81, dim=81))
        >>> layer(torch.randn(2, 256, 28, 28)).shape
        torch.Size([2, 80, 28, 28])
    """

    _channel_dim = -3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        *args,
        basis: BasisLike,
        tau: float = 0.07,
        balanced_init: bool = False,
        **kwargs,
    ) -> None:
        fixed = _resolve(basis, out_channels)
        super().__init__(in_channels, fixed.dim, kernel_size, *args, **kwargs)
        self._fix(fixed, tau, balanced_init)

    def _project(self, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        return self._conv_forward(x, weight, bias)

    def _cosines(self, unit: Tensor, basis: Tensor) -> Tensor:
        # A matrix product and not a 1x1 convolution, which cuDNN would run in TF32 unless told otherwise.
        return torch.matmul(basis, unit.flatten(-2)).unflatten(-1, unit.shape[-2:])

    def _resize(self, dim: int) -> None:
        super()._resize(dim)
        self.out_channels = dim
