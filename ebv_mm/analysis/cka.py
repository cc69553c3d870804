r"""Centred kernel alignment (CKA) of layers with a linear kernel, by minibatches.

Shapes: n examples of a minibatch, L layers, p numbers that a layer gives for one example.

The similarity of two layers with the Gram matrices K = X X^T and M = Y Y^T of a batch is

    CKA = mean HSIC_1(K, M) / sqrt(mean HSIC_1(K, K) * mean HSIC_1(M, M)),

means over all batches (Nguyen, Raghu, Kornblith 2021, "Do wide and deep networks learn the same things?"). With K~ for
K with zeros on its diagonal, the estimator

    HSIC_1(K, M) = 1 / (n (n - 3)) * (tr(K~ M~) + 1'K~1 1'M~1 / ((n - 1)(n - 2)) - 2 / (n - 2) 1'K~M~1)

is unbiased for every n >= 4 (Song et al. 2012, "Feature selection via dependence maximization"), so that what the means
tend to does not depend on the size of the batches. It is an inner product of "U-centred" matrices (Székely and Rizzo
2014, "Partial distance correlation with methods for dissimilarities"), which is how it is computed here: all pairs of
layers are one matrix product, nothing large cancels, and |CKA| <= 1. An unbiased estimate may be negative.
"""

from typing import Optional

import torch
from torch import Tensor

MIN_BATCH = 4
# Gram matrices are summed over slices of the features with at most this many numbers: 64 MB in float32.
SLICE = 2**24


def gram_matrix(features: Tensor) -> Tensor:
    """The inner products of all pairs of examples, measured from the first example.

    HSIC does not depend on the origin. With one among the data, features far from zero lose no digits, and a layer that
    gives the same for all examples has exactly a zero matrix.

    Shape:
        - Input: (n, ...), any floating point type. Output: (n, n), float64, on the same device.
    """
    flat = features.flatten(1)
    gram = torch.zeros(len(flat), len(flat), dtype=torch.float64, device=flat.device)
    for part in flat.split(max(1, SLICE // len(flat)), dim=1):
        part = part.to(torch.promote_types(part.dtype, torch.float32))
        part = part - part[:1]
        gram += part @ part.T
    return gram


def hsic(grams: Tensor) -> Tensor:
    """HSIC_1 of all pairs of Gram matrices from one minibatch.

    Shape:
        - Input: (L, n, n). Output: (L, L), float64.
    """
    n = grams.shape[-1]
    if n < MIN_BATCH:
        raise ValueError(
            f'a batch has {n} examples, but the unbiased HSIC needs at least {MIN_BATCH}; use larger batches'
        )
    flat = _u_centred(grams).flatten(1)
    return flat @ flat.T / (n * (n - 3))


def cka_of_hsic(hsic: Tensor) -> Tensor:
    """CKA of all pairs of L layers from their (mean) HSIC, (L, L) both; NaN for a layer that is constant."""
    norms = hsic.diagonal().sqrt()
    return hsic / (norms[:, None] * norms)


class MinibatchCKA:
    """CKA of all pairs of layers over a stream of minibatches; keeps an L x L matrix and nothing else.

    Example:
        >>> similarity = MinibatchCKA()
        >>> for _ in range(3):
        ...     x = torch.randn(16, 10)
        ...     similarity.update(torch.stack([gram_matrix(x), gram_matrix(2 * x)]))
        >>> similarity.cka().round().tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self) -> None:
        self.batches = 0
        self._sum: Optional[Tensor] = None

    def update(self, grams: Tensor) -> None:
        """Take in the Gram matrices (L, n, n) of the layers for one batch."""
        batch = hsic(grams).cpu()
        if self._sum is not None and self._sum.shape != batch.shape:
            raise ValueError(f'a batch comes with {len(batch)} layers, but those before had {len(self._sum)}')
        self._sum = batch if self._sum is None else self._sum + batch
        self.batches += 1

    def hsic(self) -> Tensor:
        """The mean of HSIC_1 over the batches so far, (L, L), symmetric."""
        if self._sum is None:
            raise ValueError('there has been no batch yet, but CKA needs at least one; call update() first')
        return (self._sum + self._sum.T) / (2 * self.batches)

    def cka(self) -> Tensor:
        """CKA over the batches so far, (L, L), symmetric; NaN for a layer that was constant in all of them."""
        return cka_of_hsic(self.hsic())


def _u_centred(grams: Tensor) -> Tensor:
    """Take from K~ what is a_i + a_j off the diagonal; the diagonal stays zero."""
    n = grams.shape[-1]
    centred = grams.to(torch.float64, copy=True)
    centred.diagonal(dim1=-2, dim2=-1).zero_()
    rows = centred.sum(-1, keepdim=True) / (n - 2)
    centred += rows.sum(-2, keepdim=True) / (n - 1) - rows - rows.mT
    centred.diagonal(dim1=-2, dim2=-1).zero_()
    return centred
