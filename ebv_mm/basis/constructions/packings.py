"""Design frames from cyclic difference packings: they fill the sizes that transversal designs leave."""

import math
import random
from functools import lru_cache, reduce
from typing import Callable, Iterator, List, Optional, Tuple

import torch
from torch import Tensor

from ..bounds import welch_bound
from ..fields import prime_power
from ..hadamard import num_sign_patterns
from .designs import Design
from .frame import Offer

Blocks = Tuple[Tuple[int, ...], ...]
MAX_MODULUS = 400
MAX_NODES = 4000
MAX_ATTEMPTS = 12


def packing_supports(modulus: int, blocks: Blocks, short: int = 0) -> Callable[[Tensor], Tensor]:
    """Point p of Z_v lies on the translates b + p - x, x in b, of each base block b; each translate is a coordinate.

    Args:
        short: If not 0, the subgroup of this order is one more block; it has only v / short different translates.
    """
    offset = torch.tensor([i * modulus for i, block in enumerate(blocks) for _ in block])
    element = torch.tensor([x for block in blocks for x in block])

    def supports(point: Tensor) -> Tensor:
        out = offset + (point[:, None] - element) % modulus
        if short:
            out = torch.cat([out, len(blocks) * modulus + point[:, None] % (modulus // short)], 1)
        return out

    return supports


@lru_cache(maxsize=4096)
def difference_packing(modulus: int, sizes: Tuple[int, ...], short: int = 0) -> Optional[Blocks]:
    """Base blocks of the given sizes in Z_v whose differences are all distinct; None if none was found.

    If ``short`` is not 0, no difference is a multiple of v / short, so that the subgroup of that order can join them.
    Then two points share at most one translate of a block. Randomised depth-first search over bit masks, always the
    same for the same arguments. Where v is prime and equal sizes come in odd multiples, first among the packings
    with a multiplier group H: blocks h B, h in H, whose differences must lie in different cosets of H
    (R. M. Wilson, Cyclotomy and difference families in elementary abelian groups, J. Number Theory 4 (1972)).
    """
    common = reduce(math.gcd, [sizes.count(size) for size in set(sizes)])
    orders = [1]
    if prime_power(modulus) == (modulus, 1) and not short:
        orders = [e for e in range(common, 0, -1) if common % e == 0 and e % 2 and (modulus - 1) % e == 0]
    for order in orders:
        group = _multiplier_group(modulus, order)
        representatives = [size for size in sorted(set(sizes), reverse=True) for _ in range(sizes.count(size) // order)]
        blocks = _search(modulus, representatives, group, short)
        if blocks is not None:
            return tuple(tuple(h * x % modulus for x in block) for block in blocks for h in group)
    return None


def _multiplier_group(modulus: int, order: int) -> List[int]:
    """The subgroup of this order of the units of a prime modulus."""
    if order == 1:
        return [1]
    for g in range(2, modulus):
        h = pow(g, (modulus - 1) // order, modulus)
        group = [pow(h, i, modulus) for i in range(order)]
        if len(set(group)) == order:
            return group
    raise AssertionError(f'{modulus} is no prime')


def _search(modulus: int, sizes: List[int], group: List[int], short: int) -> Optional[List[Tuple[int, ...]]]:
    generator = random.Random(modulus)
    max_nodes = min(MAX_NODES, 100_000 // modulus)
    full = (1 << modulus) - 1
    # a difference v / 2 is its own negative, so that it would join two points twice
    taken = 1 << modulus // 2 if modulus % 2 == 0 else 0
    for multiple in range(1, short):
        taken |= 1 << multiple * modulus // short
    nodes = 0

    def closure(difference: int) -> int:
        """All differences that one difference and its negative stand for."""
        mask = 0
        for h in group:
            mask |= 1 << h * difference % modulus | 1 << -h * difference % modulus
        return mask

    closures = [closure(x) for x in range(modulus)]

    def extend(done: List[Tuple[int, ...]], block: Tuple[int, ...], used: int, candidates: int):
        """``candidates``: elements whose differences to the block are all free."""
        nonlocal nodes
        nodes += 1
        if nodes > max_nodes:
            return None
        if len(block) == sizes[len(done)]:
            done = done + [block]
            if len(done) == len(sizes):
                return done
            return extend(done, (0,), used, full & ~used & ~1)
        elements = [x for x in range(modulus) if candidates >> x & 1]
        generator.shuffle(elements)
        for x in elements[:8]:
            new = 0
            for y in block:
                mask = closures[(x - y) % modulus]
                if mask & new:
                    break
                new |= mask
            else:
                now = used | new
                free = full & ~now
                left = candidates & ~(1 << x)
                for y in block + (x,):
                    left &= (free << y | free >> (modulus - y)) & full
                found = extend(done, block + (x,), now, left)
                if found is not None or nodes > max_nodes:
                    return found
        return None

    # many short tries are better than a long one, which seldom leaves its first choices
    for _ in range(8):
        nodes = 0
        found = extend([], (0,), taken, full & ~taken & ~1)
        if found is not None:
            return found
    return None


def packing_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    """The largest r for which a packing is found, with as many coordinates as d allows."""
    if num_classes <= dim:
        return
    attempts = 0
    for size in range(min(int(1 / welch_bound(num_classes, dim)) + 1, dim), 3, -1):
        patterns = num_sign_patterns(size)
        if patterns < 4:
            continue
        for _, v, sizes, short in _plans(size, -(-num_classes // patterns), dim):
            attempts += 1
            blocks = difference_packing(v, sizes, short)
            if blocks is not None:
                used = len(blocks) * v + (v // short if short else 0)

                def build(v=v, blocks=blocks, size=size, short=short, used=used) -> Design:
                    return Design(used, v, size, 1, packing_supports(v, blocks, short))

                detail = f'r = {size}, {len(blocks)} blocks mod {v}' + (', 1 short' if short else '')
                yield Offer('packing', detail, v * patterns, used, 1 / size, build, structured=True)
                return
            if attempts >= MAX_ATTEMPTS:
                return


def _plans(size: int, points: int, dim: int) -> List[Tuple[float, int, Tuple[int, ...], int]]:
    """(share of all differences used, modulus, block sizes, short) that may give r = size; the easiest first."""
    plans = []
    for short in (0, 2, 3, 4, 5, 6, 7):
        for count in range(1, dim // points + 1):
            sizes = _balanced(size - (1 if short else 0), count)
            used = sum(k * (k - 1) for k in sizes) + max(short - 1, 0)
            if sizes[-1] < 1 or sizes[0] < 2:
                continue
            largest = int(dim / (count + 1 / short)) // short * short if short else dim // count
            moduli = range(min(largest, MAX_MODULUS), max(points, used + 1) - 1, -1)
            moduli = [v for v in moduli if not short or v % short == 0]
            primes = [v for v in moduli if prime_power(v) == (v, 1)]
            for v in dict.fromkeys(moduli[:1] + primes[:2]):
                # a multiplier group of the right order makes a search easy even if all differences are needed
                easy = not short and v in primes and count % 2 and len(set(sizes)) == 1 and (v - 1) % count == 0
                share = used / (v - 1)
                if easy or share <= (1.0 if v <= 100 else 0.9):
                    plans.append((share - (0.2 if easy else 0), v, sizes, short))
    return sorted(plans)[:6]


def _balanced(total: int, count: int) -> Tuple[int, ...]:
    """``count`` sizes that differ by at most one and add up to ``total``, largest first."""
    small, larger = divmod(total, count)
    return (small + 1,) * larger + (small,) * (count - larger)
