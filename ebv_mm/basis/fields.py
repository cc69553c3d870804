"""Finite fields GF(p^k), small enough for tables; elements are the whole numbers 0 ... q - 1 in int64 tensors."""

from functools import lru_cache
from typing import List, Optional, Tuple

import torch
from torch import Tensor


def prime_power(q: int) -> Optional[Tuple[int, int]]:
    """(p, k) with q = p^k, p prime; None if q is no prime power."""
    if q < 2:
        return None
    p = next((i for i in range(2, int(q**0.5) + 1) if q % i == 0), q)
    k = 0
    while q % p == 0:
        q //= p
        k += 1
    return (p, k) if q == 1 else None


@lru_cache(maxsize=16)
def prime_powers(stop: int) -> Tuple[int, ...]:
    """All prime powers q < stop, in order."""
    return tuple(q for q in range(2, stop) if prime_power(q))


class Field:
    """GF(q). The number a stands for the polynomial whose coefficients are the base-p digits of a.

    Multiplication uses logarithms to a primitive element: the root x of the first primitive polynomial of degree k,
    or for q = p the smallest primitive root. Use :func:`field`, which keeps each field once.
    """

    def __init__(self, q: int) -> None:
        split = prime_power(q)
        if split is None:
            raise ValueError(f'q = {q}, but a finite field has a prime power of elements')
        self.q = q
        self.p, self.k = split
        powers = _powers_of_primitive_element(self.p, self.k)
        self.exp = torch.tensor(powers + powers)  # twice, so that a sum of two logarithms needs no modulo
        self.log = torch.zeros(q, dtype=torch.int64)
        self.log[self.exp[: q - 1]] = torch.arange(q - 1)
        self.place = self.p ** torch.arange(self.k)

    def digits(self, a: Tensor) -> Tensor:
        """Coefficients (..., k) over the prime field."""
        return a.unsqueeze(-1) // self.place % self.p

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        if self.p == 2:
            return a ^ b
        if self.k == 1:
            return (a + b) % self.p
        return ((self.digits(a) + self.digits(b)) % self.p * self.place).sum(-1)

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        if self.k == 1:
            return a * b % self.p
        return torch.where((a == 0) | (b == 0), 0, self.exp[self.log[a] + self.log[b]])

    def power(self, a: Tensor, n: int) -> Tensor:
        """a^n for n >= 0, with 0^0 = 1."""
        if n == 0:
            return torch.ones_like(a)
        return torch.where(a == 0, 0, self.exp[self.log[a] * n % (self.q - 1)])

    def trace(self, a: Tensor) -> Tensor:
        """Absolute trace a + a^p + ... + a^(p^(k-1)), a number below p."""
        total = a
        for i in range(1, self.k):
            total = self.add(total, self.power(a, self.p**i))
        return total

    def quadratic_character(self, a: Tensor) -> Tensor:
        """1 for non-zero squares, -1 for non-squares, 0 for 0; q odd."""
        return torch.where(a == 0, 0, 1 - 2 * (self.log[a] % 2))


@lru_cache(maxsize=64)
def field(q: int) -> Field:
    return Field(q)


def _powers_of_primitive_element(p: int, k: int) -> List[int]:
    """1, x, x^2, ... of a primitive element x of GF(p^k), q - 1 of them."""
    # k > 1: x^k = c_0 + c_1 x + ...; c_0 = 0 would be reducible
    for reduction in (_to_digits(c, p, k) for c in range(1, p**k) if c % p):
        powers = _orbit(reduction, p, k)
        if powers is not None:
            return powers
    raise AssertionError(f'GF({p}^{k}) has no primitive element')


def _orbit(reduction: Tuple[int, ...], p: int, k: int) -> Optional[List[int]]:
    """All powers of x, if it is primitive. k = 1: x is the number ``reduction[0]``."""
    q = p**k
    if k == 1:
        powers, value = [1], reduction[0]
        while value != 1:
            powers.append(value)
            value = value * reduction[0] % p
        return powers if len(powers) == q - 1 else None
    one = (1,) + (0,) * (k - 1)
    place = [p**i for i in range(k)]
    powers, value = [], one
    while True:
        powers.append(sum(c * w for c, w in zip(value, place)))
        carry = value[-1]
        value = tuple((c + carry * r) % p for c, r in zip((0,) + value[:-1], reduction))
        if value == one:
            return powers if len(powers) == q - 1 else None
        if len(powers) >= q:
            return None


def _to_digits(number: int, p: int, k: int) -> Tuple[int, ...]:
    return tuple(number // p**i % p for i in range(k))
