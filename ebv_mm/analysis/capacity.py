"""How many classes fit into d dimensions at a given largest |cosine| alpha: the question of the paper's supplement."""

import csv
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Tuple, Union

from ..basis import capacity as bound
from ..basis import closed_forms, coherence
from ..basis.bounds import ALPHA_TOLERANCE
from ..basis.solvers import ALGORITHM1_TOLERANCE, algorithm1, soft_maximum, tight_frame
from ..basis.watch import Watch
from ..output import new_figure, save_figure, whole_file

# Algorithm 1 with the falling step and alpha that reach the published bases (docs/basis.md)
TIGHTNESS, DECAY = 0.9, 30


class Capacity(NamedTuple):
    """The largest N for which alpha is reached: by iteration, by a closed form; and what no basis can exceed."""

    alpha: float
    dim: int
    solver: int
    closed: int
    bound: int


class Search(NamedTuple):
    """How the iterative answer is found.

    Args:
        solver: 'solver', ours, or 'algorithm1', the paper's.
        steps: For each N that is tried.
        max_classes: The largest N that is tried.
    """

    solver: str = 'solver'
    steps: int = 300
    max_classes: int = 600
    seed: int = 0

    def reaches(self, num_classes: int, dim: int, alpha: float) -> bool:
        """Whether the solver finds N vectors in R^d at alpha."""
        if self.solver == 'algorithm1':
            lr = min(0.03, 3 / num_classes)  # a row is pushed by a share of all others
            options = dict(lr=lr, last_lr=lr / DECAY, tightness=TIGHTNESS, max_steps=self.steps)
            vectors = algorithm1(num_classes, dim, alpha, seed=self.seed, **options)
            return coherence(vectors) <= alpha + ALGORITHM1_TOLERANCE
        start = tight_frame(num_classes, dim, self.seed)
        return soft_maximum(start, steps=self.steps, watch=Watch(target=alpha))[1] <= alpha + ALPHA_TOLERANCE

    def measure(self, alpha: float, dim: int) -> Capacity:
        """All three answers."""
        most = bound(dim, alpha)

        def closed(num_classes: int) -> bool:
            return any(offer.coherence <= alpha + ALPHA_TOLERANCE for offer in closed_forms(num_classes, dim))

        by_solver = largest(lambda n: self.reaches(n, dim, alpha), dim, min(most, self.max_classes))
        return Capacity(alpha, dim, by_solver, largest(closed, dim, most), most)


def largest(fits: Callable[[int], bool], dim: int, most: int) -> int:
    """The largest N <= most that fits, by bisection: what has N vectors has fewer, too; d always fit."""
    few, many = min(dim, most), most + 1
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(middle) else (few, middle)
    return few


class CapacityTable:
    """A csv file of capacities; it belongs to one :class:`Search`, and the answers of others are not mixed in."""

    def __init__(self, path: Union[str, Path], search: Search) -> None:
        self.path = Path(path)
        # what 0.1.0 wrote is still read: ours is the solver that is not named
        named = {name: value for name, value in search._asdict().items() if (name, value) != ('solver', 'solver')}
        self.header = '# ' + ' '.join(f'{name}={value}' for name, value in named.items())
        self.rows: Dict[Tuple[float, int], Capacity] = {row[:2]: row for row in self._read()}

    def _read(self) -> List[Capacity]:
        if not self.path.is_file():
            return []
        with open(self.path, newline='') as file:
            if file.readline().strip() != self.header:
                raise ValueError(
                    f'{self.path} was made with other options than {self.header[2:]!r}; give another folder'
                )
            rows = [[row[name] for name in Capacity._fields] for row in csv.DictReader(file)]
        return [Capacity(float(alpha), *map(int, counts)) for alpha, *counts in rows]

    def add(self, row: Capacity) -> None:
        """Write the whole table anew: an interruption leaves the one before."""
        self.rows[row[:2]] = row
        with whole_file(self.path) as part, open(part, 'w', newline='') as file:
            file.write(f'{self.header}\n')
            csv.writer(file).writerows([Capacity._fields, *self.rows.values()])


def draw_capacities(rows: List[Capacity], path: Union[str, Path], search: Search) -> None:
    """Draw N over d, one panel for each alpha."""
    alphas = sorted({row.alpha for row in rows})
    figure = new_figure(3.4 * len(alphas) + 0.6, 4.2)
    panels = figure.subplots(1, len(alphas), sharey=True, squeeze=False)[0]
    name = 'Algorithm 1' if search.solver == 'algorithm1' else 'solver'
    styles = {
        'bound': dict(color='#d1495b', linestyle='--', label='no basis has more'),
        'closed': dict(color='#222222', marker='s', markersize=4, label='closed form'),
        'solver': dict(
            color='#4c78a8', marker='o', markersize=4, label=f'{name} (tried up to N = {search.max_classes})'
        ),
    }
    for axes, alpha in zip(panels, alphas):
        shown = sorted(row for row in rows if row.alpha == alpha)
        dims = [row.dim for row in shown]
        for field, style in styles.items():
            axes.plot(dims, [getattr(row, field) for row in shown], linewidth=1.4, **style)
        axes.plot(dims, dims, color='#bbbbbb', linewidth=1, label='N = d, orthonormal')
        axes.set_xscale('log', base=2)
        axes.set_yscale('log')
        axes.set_xticks(dims, [str(dim) for dim in dims])
        axes.minorticks_off()
        axes.set_xlabel('d')
        axes.set_title(f'largest |cosine| = {alpha:g}', loc='left', fontsize=11)
        axes.spines[['top', 'right']].set_visible(False)
    # a bound that is far away needs no room
    reached = max(max(row.solver, row.closed) for row in rows)
    panels[0].set_ylim(min(row.dim for row in rows) * 0.8, reached * 6)
    panels[0].set_ylabel('N, number of classes')
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc='outside lower center', ncols=4)
    save_figure(figure, path)
