"""Make a basis for N classes in R^d."""

import json
import math
import os
import shlex
from pathlib import Path
from typing import Iterable, List, Optional, Tuple, Union

import torch
from torch import Tensor

from ..devices import check_device
from .basis import RECIPE_VERSION, Basis, BasisError, StructuredBasis
from .bounds import best_bound, smallest_dim, welch_bound
from .constructions import Offer, closed_forms, materialise
from .measure import to_degrees
from .rotation import Rotation
from .solvers import algorithm1, default_steps, shaken, soft_maximum, squared_hinge, tight_frame
from .solvers.algorithm1 import TOLERANCE as ALGORITHM1_TOLERANCE
from .solvers.soft_maximum import DEFAULT_WORK, step_work
from .watch import Report, Watch, as_report

TOOL = Path(__file__).parents[2] / 'tools' / 'make_basis.py'
# closed forms whose frames have fast products
STRUCTURED = ('orthonormal', 'kerdock', 'delsarte-goethals', 'gold', 'transversal', 'reed-solomon', 'packing')
SOLVERS = ('solver', 'polish', 'algorithm1')
# below this many steps the solver does not get anywhere
FEWEST_STEPS = 100
# seen for 2 < N/d < 10: the solver comes to about bound * (1 + 0.042 N/d)
SOLVER_EXCESS = 0.042
# of a time limit, for levelling a random start
HINGE_SHARE = 0.7
# operations that two cores do in a second, to tell beforehand whether there is time for a solver
WORK_PER_SECOND = 5e10
ALPHA_TOLERANCE = 1e-6


def closed_form_basis(
    num_classes: int,
    dim: int,
    *,
    method: str = 'auto',
    seed: int = 0,
    rotate: bool = True,
    structured: bool = False,
) -> Basis:
    """Make a basis without iteration: at once, and the same on every rank. Raises where no closed form exists.

    Args:
        method: One of the closed forms that exist for (N, d), 'auto' for the best of them.
        seed: Of the random rotation.
        rotate: False keeps the natural coordinates, in which most closed forms are sparse or signs.
        structured: Never store the matrix, but the kilobytes that it is made of: see :class:`StructuredBasis`. The
            vectors are the same.
    """
    check_size(num_classes, dim)
    check_seed(seed)
    if structured:
        return structured_basis(num_classes, dim, method, seed=seed, rotate=rotate)
    offers = closed_forms(num_classes, dim)
    offer = next((offer for offer in offers if method in ('auto', offer.method)), None)
    if offer is None:
        if offers:
            remedy = f'choose one of: {quoted(offer.method for offer in offers)}'
        else:
            remedy = f'make a file with: {make_command(num_classes, dim)}, and give its path as the basis'
        raise ValueError(
            f'there is no closed form for num_classes = {num_classes}, dim = {dim}, method = {method!r}; {remedy}'
        )
    return from_offer(offer, num_classes, dim, seed=seed, rotate=rotate)


def quoted(names: Iterable[str]) -> str:
    return ', '.join(map(repr, names))


def structured_offers(num_classes: int, dim: int) -> List[Offer]:
    """The closed forms that have fast products, the best first."""
    offers = [offer for offer in closed_forms(num_classes, dim) if offer.method in STRUCTURED]
    # the unit vectors that may fill up a frame are no part of its structure
    return [offer for offer in offers if offer.num_vectors >= num_classes]


def structured_basis(
    num_classes: int, dim: int, method: str = 'auto', *, seed: int = 0, rotate: bool = True
) -> StructuredBasis:
    """The best closed form that has fast products."""
    offers = structured_offers(num_classes, dim)
    offer = next((offer for offer in offers if method in ('auto', offer.method)), None)
    if offer is None:
        names = quoted(offer.method for offer in offers)
        raise ValueError(
            f'there is no structured basis for num_classes = {num_classes}, dim = {dim}, method = {method!r} '
            f'({"there are: " + names if names else "there is none"}); take a power of two as dim, or a dense one'
        )
    frame = offer.build()
    products = frame.products(num_classes, dim)
    products.rotation = Rotation(dim, seed) if rotate else None
    return StructuredBasis(
        products,
        lambda count: materialise(frame, count, dim, rotate=rotate, seed=seed),
        (num_classes, dim, offer.method),
        seed if rotate else None,
        offer.coherence,
    )


def from_recipe(recipe: str) -> StructuredBasis:
    """Make the basis that ``StructuredBasis.recipe`` describes, and check that it is the same, bit by bit."""
    wanted = json.loads(recipe)
    if wanted['version'] != RECIPE_VERSION:
        raise BasisError(f'the recipe {recipe} is of another version; use the ebv_mm that wrote it')
    seed = wanted['seed']
    basis = structured_basis(
        wanted['num_classes'], wanted['dim'], wanted['method'], seed=seed or 0, rotate=seed is not None
    ).first(wanted['first'])
    if basis.products.digest() != wanted['sha256']:
        raise BasisError(
            f'the recipe {recipe} gives another basis here (sha256 {basis.products.digest()}); use the ebv_mm that '
            'wrote it'
        )
    return basis


def from_offer(offer: Offer, num_classes: int, dim: int, *, seed: int = 0, rotate: bool = True) -> Basis:
    vectors = materialise(offer.build(), num_classes, dim, rotate=rotate, seed=seed)
    return Basis(vectors, offer.method, seed if rotate else None, known_coherence=offer.coherence)


def make_basis(
    num_classes: int,
    dim: int,
    *,
    method: str = 'auto',
    alpha: Optional[float] = None,
    seed: int = 0,
    time_limit: Optional[float] = None,
    device: Union[None, str, torch.device] = None,
    progress: Union[bool, Report] = False,
    structured: Optional[bool] = None,
    rotate: bool = True,
) -> Basis:
    """Make N unit vectors in R^d whose largest |cosine| is as small as can be.

    ``auto`` takes the best closed form and, unless that is so close to the bound that a solver cannot be expected to
    do better, or N is too large for one, lets the solver try, from a closed form with room to move and from a random
    tight frame; it returns the best of all. The same arguments give the same basis on the same machine,
    unless a time limit ends a solver: then it also depends on the machine's speed.

    Args:
        method: 'auto', 'solver' (from a random tight frame), 'polish' (the solver from a closed form with room to
            move; the best closed form, where that is better), 'algorithm1' (the paper's, for reproduction), or the
            name of a closed form.
        alpha: Stop as soon as the largest |cosine| is at most this. The caller sees in ``coherence`` whether it is.
        time_limit: Seconds for the solvers; None for a fixed number of steps, about a minute on two cores.
            Algorithm 1 goes on until it reaches alpha or diverges, for 100,000 steps at most.
        device: Where the solvers compute; default cpu.
        progress: True for a line on the terminal, or a function of (seconds, best coherence so far) whose true
            return value ends the solver with what it has.
        structured: As in :func:`closed_form_basis`; with the method 'auto' or the name of a closed form. None: where
            ``method`` names one that is for more classes than dimensions and has fast products.
        rotate: As in :func:`closed_form_basis`; for closed forms.
    """
    check_size(num_classes, dim)
    check_seed(seed)
    check_device(device)
    if structured:
        if alpha is not None or method in SOLVERS:
            raise ValueError('structured=True asks for a closed form; give no alpha and no solver with it')
        return structured_basis(num_classes, dim, method, seed=seed, rotate=rotate)
    check_alpha(alpha, num_classes, dim)
    report = as_report(progress)
    bound = best_bound(num_classes, dim)
    watch = Watch(time_limit, bound * (1 + 1e-6) if alpha is None else alpha, report)
    if method == 'algorithm1':
        if alpha is None and num_classes <= dim:
            raise ValueError(
                f'method "algorithm1" needs an alpha for num_classes = {num_classes} <= dim = {dim}, where it never '
                'reaches the best, 0; give one, such as 0.004'
            )
        wanted = 1.2 * bound if alpha is None else alpha
        vectors = algorithm1(num_classes, dim, wanted, seed=seed, watch=watch, device=device)
        return Basis(vectors, method, seed)
    offers = closed_forms(num_classes, dim)
    if method not in ('auto',) + SOLVERS:
        forms = [offer.method for offer in offers]
        if method not in forms:
            methods = ['auto', 'solver', 'algorithm1'] + (['polish', *forms] if forms else [])
            raise ValueError(
                f'method = {method!r}, but num_classes = {num_classes}, dim = {dim} can be made by {quoted(methods)}; '
                'choose one of these'
            )
        if structured is None:
            structured = num_classes > dim and method in {offer.method for offer in structured_offers(num_classes, dim)}
        return closed_form_basis(num_classes, dim, method=method, seed=seed, rotate=rotate, structured=structured)
    if method == 'polish' and not offers:
        raise ValueError(
            f'there is no closed form for num_classes = {num_classes}, dim = {dim} to polish; use method "solver"'
        )
    best: Optional[Basis] = None
    if method != 'solver' and offers:
        best = from_offer(offers[0], num_classes, dim, seed=seed, rotate=rotate)
        watch.see(best.coherence)
        if watch.over or (method == 'auto' and not worth_trying(best.coherence, num_classes, dim, time_limit)):
            return best
    starts: List[Optional[Offer]] = []
    if method != 'solver' and offers:
        starts.append(roomiest(offers))
    if method != 'polish':
        starts += [None] * num_restarts(num_classes, dim)
    for number, start in enumerate(starts):
        rows, step_size = solver_start(start, num_classes, dim, seed + number)
        steps = None if time_limit is not None else max(FEWEST_STEPS, default_steps(num_classes, dim) // len(starts))
        share = 1 / (len(starts) - number)
        rows = rows.to(device or 'cpu')
        if start is None and num_classes > dim:
            level = welch_bound(num_classes, dim) * (1 + SOLVER_EXCESS * num_classes / dim)
            levelled, reached = squared_hinge(rows, min(level, 0.9), watch=watch, share=share * HINGE_SHARE)
            if best is None or reached < best.coherence:
                best = Basis(levelled, 'solver', seed)
            if watch.over:
                break
            if time_limit is not None:
                # what is left is too short to begin anew
                rows, step_size = levelled, (0.03, 2e-4)
        vectors, _ = soft_maximum(rows, steps=steps, watch=watch, share=share, step_size=step_size)
        found = Basis(vectors, 'solver' if start is None else f'{start.method}+solver', seed)
        if best is None or found.coherence < best.coherence:
            best = found
        if watch.over:
            break
    return best


def num_restarts(num_classes: int, dim: int) -> int:
    """How many random starts: several where a step costs nothing, which is where bad minima are."""
    return max(1, min(6, int(1e9 / step_work(num_classes, dim) / 40)))


def roomiest(offers: List[Offer]) -> Offer:
    """Of the closed forms that are about as good as the best the one that uses the fewest coordinates.

    One that uses all is usually rigid: the solver does not get away from it.
    """
    good = [offer for offer in offers if offer.coherence <= 1.25 * offers[0].coherence]
    return min(good, key=lambda offer: offer.dim)


def solver_start(offer: Optional[Offer], num_classes: int, dim: int, seed: int) -> Tuple[Tensor, Tuple[float, float]]:
    """Rows to begin with, and the first and last step size: a random tight frame, or a closed form, shaken."""
    if offer is None:
        return tight_frame(num_classes, dim, seed), (0.3, 2e-4)
    vectors = materialise(offer.build(), num_classes, dim, seed=seed)
    return shaken(vectors, num_classes, 0.01, seed), (0.1, 2e-4)


def worth_trying(coherence: float, num_classes: int, dim: int, time_limit: Optional[float]) -> bool:
    """Whether a solver can be expected to improve on a closed form, and has time for it."""
    expected = best_bound(num_classes, dim) * (1 + SOLVER_EXCESS * num_classes / dim)
    work = DEFAULT_WORK if time_limit is None else time_limit * WORK_PER_SECOND
    return coherence > 0.98 * expected and work / step_work(num_classes, dim) >= FEWEST_STEPS


def check_size(num_classes: int, dim: int) -> None:
    for name, value in (('num_classes', num_classes), ('dim', dim)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f'{name} = {value!r}, but a basis needs a whole number >= 1; give one')


def check_seed(seed: int) -> None:
    if not -(2**63) <= seed < 2**63:
        raise ValueError(f'seed = {seed}, but a seed has 64 bits, -2**63 to 2**63 - 1; give one of these')


def check_alpha(alpha: Optional[float], num_classes: int, dim: int) -> None:
    if alpha is None:
        return
    if not (math.isfinite(alpha) and 0 <= alpha < 1):
        raise ValueError(f'alpha = {alpha!r}, but a largest |cosine| to reach lies in [0, 1); give such a number')
    bound = best_bound(num_classes, dim)
    if alpha < bound - ALPHA_TOLERANCE:
        raise ValueError(
            f'alpha = {alpha!r} is impossible: no {num_classes} vectors in R^{dim} have a largest |cosine| below '
            f'{bound:.6f} ({to_degrees(bound):.3f} degrees); ask for at least that, or for dim >= '
            f'{smallest_dim(num_classes, alpha)}'
        )


def reaches(basis: Basis, alpha: float) -> bool:
    """Whether a basis is as good as was asked for, up to rounding; for Algorithm 1 by the authors' own test."""
    tolerance = ALGORITHM1_TOLERANCE if basis.method == 'algorithm1' else ALPHA_TOLERANCE
    return basis.coherence <= alpha + tolerance


def tool_command() -> str:
    """How to call tools/make_basis.py from here; where only the package is installed, from a clone."""
    return shlex.join(['python', os.path.relpath(TOOL) if TOOL.exists() else 'tools/make_basis.py'])


def make_command(num_classes: object, dim: object, out: Union[str, Path] = 'FILE.safetensors') -> str:
    """The command line that makes a basis, for error messages."""
    return f'{tool_command()} --num-classes {num_classes} --dim {dim} --out {shlex.quote(str(out))}'
