"""Make a basis for N classes in R^d: which method, and what to take of what it found."""

from typing import List, Mapping, Optional, Union

import torch

from ..devices import check_device
from .arguments import check_seed, check_size
from .basis import Basis, DenseBasis
from .bounds import ALPHA_TOLERANCE, best_bound, check_alpha
from .closed_form import closed_form_basis, dense_from_offer, quoted
from .constructions import closed_forms
from .solvers import ALGORITHM1_TOLERANCE, algorithm1
from .solvers.search import random_starts, roomiest, search, worth_trying
from .watch import Report, Watch

# methods that iterate, and what they are; all others are closed forms
SOLVERS = {
    'solver': 'iteration from random starts',
    'polish': 'iteration from a closed form',
    'algorithm1': "iteration, the paper's own",
}


def make_basis(
    num_classes: int,
    dim: int,
    *,
    method: str = 'auto',
    alpha: Optional[float] = None,
    seed: int = 0,
    time_limit: Optional[float] = None,
    device: Union[None, str, torch.device] = None,
    progress: Optional[Report] = None,
    structured: bool = False,
    rotate: bool = True,
    options: Optional[Mapping[str, float]] = None,
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
        progress: A function of (seconds, best coherence so far) whose true return value ends the solver with what it
            has.
        structured: As in :func:`closed_form_basis`; with the method 'auto' or the name of a closed form.
        rotate: As in :func:`closed_form_basis`; for closed forms.
        options: Of :func:`algorithm1`: lr, last_lr, tightness, max_steps, patience.
    """
    num_classes, dim = check_size(num_classes, dim)
    seed = check_seed(seed)
    check_device(device)
    if options and method != 'algorithm1':
        raise ValueError(f'{", ".join(options)}: only the method "algorithm1" has such options; leave them out')
    if structured:
        if alpha is not None or method in SOLVERS:
            raise ValueError('structured=True asks for a closed form; give no alpha and no solver with it')
        return closed_form_basis(num_classes, dim, method=method, seed=seed, rotate=rotate, structured=True)
    check_alpha(alpha, num_classes, dim)
    check_method(method, num_classes, dim)
    bound = best_bound(num_classes, dim)
    watch = Watch(time_limit, bound * (1 + 1e-6) if alpha is None else alpha, progress)
    if method == 'algorithm1':
        if alpha is None and num_classes <= dim:
            raise ValueError(
                f'method "algorithm1" needs an alpha for num_classes = {num_classes} <= dim = {dim}, where it never '
                'reaches the best, 0; give one, such as 0.004'
            )
        wanted = 1.2 * bound if alpha is None else alpha
        vectors = algorithm1(num_classes, dim, wanted, seed=seed, watch=watch, device=device, **(options or {}))
        return DenseBasis(vectors, method, seed)
    if method not in ('auto', *SOLVERS):
        return closed_form_basis(num_classes, dim, method=method, seed=seed, rotate=rotate)
    offers = [] if method == 'solver' else closed_forms(num_classes, dim)
    best: Optional[DenseBasis] = None
    if offers:
        best = dense_from_offer(offers[0], num_classes, dim, seed=seed, rotate=rotate)
        watch.see(best.coherence)
        if watch.over or (method == 'auto' and not worth_trying(best.coherence, num_classes, dim, time_limit)):
            return best
    starts = ([roomiest(offers)] if offers else []) + ([] if method == 'polish' else random_starts(num_classes, dim))
    return search(starts, num_classes, dim, best, seed=seed, watch=watch, device=device)


def methods(num_classes: int, dim: int) -> List[str]:
    """All that can make N vectors in R^d."""
    forms = [offer.method for offer in closed_forms(num_classes, dim)]
    return ['auto', *(name for name in SOLVERS if name != 'polish' or forms), *forms]


def check_method(method: str, num_classes: int, dim: int) -> None:
    """Raise ValueError unless a method can make N vectors in R^d."""
    if method in ('auto', 'solver', 'algorithm1'):
        return
    known = methods(num_classes, dim)
    if method not in known:
        raise ValueError(
            f'method = {method!r}, but num_classes = {num_classes}, dim = {dim} can be made by {quoted(known)}; '
            'choose one of these'
        )


def reaches(basis: Basis, alpha: float) -> bool:
    """Whether a basis is as good as was asked for, up to rounding; for Algorithm 1 by the authors' own test."""
    tolerance = ALGORITHM1_TOLERANCE if basis.method == 'algorithm1' else ALPHA_TOLERANCE
    return basis.coherence <= alpha + tolerance
