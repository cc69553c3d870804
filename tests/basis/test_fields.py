"""Finite fields and Hadamard matrices."""

import pytest
import torch

from ebv_mm.basis.fields import Field, field, prime_power, prime_powers
from ebv_mm.basis.hadamard import conference, hadamard, hadamard_kind, num_sign_patterns, sign_patterns


def test_prime_powers():
    assert prime_powers(33) == (2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32)
    assert prime_power(343) == (7, 3)
    assert prime_power(12) is None
    with pytest.raises(ValueError, match='q = 12'):
        Field(12)


@pytest.mark.parametrize('q', [2, 3, 4, 5, 8, 9, 13, 16, 25, 27, 49, 64, 81, 121, 529])
def test_field_axioms(q):
    f = field(q)
    generator = torch.Generator().manual_seed(q)
    a, b, c = torch.randint(0, q, (3, 400), generator=generator)
    assert torch.equal(f.add(a, b), f.add(b, a))
    assert torch.equal(f.add(f.add(a, b), c), f.add(a, f.add(b, c)))
    assert torch.equal(f.mul(a, f.add(b, c)), f.add(f.mul(a, b), f.mul(a, c)))
    assert torch.equal(f.mul(f.mul(a, b), c), f.mul(a, f.mul(b, c)))
    assert torch.equal(f.mul(a, torch.ones_like(a)), a)
    assert sorted(f.exp[: q - 1].tolist()) == list(range(1, q))
    # Frobenius is additive, the trace falls into the prime field and takes each value equally often
    assert torch.equal(f.power(f.add(a, b), f.p), f.add(f.power(a, f.p), f.power(b, f.p)))
    assert torch.equal(torch.bincount(f.trace(torch.arange(q)), minlength=f.p), torch.full((f.p,), q // f.p))


@pytest.mark.parametrize('q', [3, 5, 9, 25, 27])
def test_quadratic_character(q):
    f = field(q)
    numbers = torch.arange(1, q)
    squares = set(f.mul(numbers, numbers).tolist())
    assert [int(x) == 1 for x in f.quadratic_character(numbers)] == [int(x) in squares for x in numbers]


@pytest.mark.parametrize('order', [n for n in range(1, 130) if hadamard_kind(n)])
def test_hadamard(order):
    h = hadamard(order)
    assert torch.equal(h.abs(), torch.ones_like(h))
    assert torch.equal(h @ h.T, order * torch.eye(order, dtype=torch.float64))
    assert torch.equal(h[:, 0], torch.ones(order, dtype=torch.float64))


def test_hadamard_orders():
    assert [n for n in range(4, 130, 4) if not hadamard_kind(n)] == [92, 116]
    with pytest.raises(ValueError, match='order = 6'):
        hadamard(6)


@pytest.mark.parametrize('q', [3, 5, 7, 9, 13])
def test_conference(q):
    c = conference(q)
    assert torch.equal(c @ c.T, q * torch.eye(q + 1, dtype=torch.float64))
    assert torch.equal(c.T, c if q % 4 == 1 else -c)


@pytest.mark.parametrize('slack', [1, 2, 3])
def test_sign_patterns(slack):
    for length in range(1, 70):
        patterns = sign_patterns(length, slack)
        assert patterns.shape == (num_sign_patterns(length, slack), length)
        assert (patterns @ patterns.T).fill_diagonal_(0).abs().max() <= slack
