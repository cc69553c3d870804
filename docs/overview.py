"""Draw docs/overview.png: what EBV replaces, and the angles between its vectors."""

from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from ebv_mm import make_basis
from ebv_mm.basis.measure import to_degrees
from ebv_mm.output import new_figure, save_figure

TRAINED, FIXED, INK = '#4c78a8', '#d9d9d9', '#222222'
SIZE = 1000, 100


def draw_chain(axes: Axes, title: str, boxes: list, y: float) -> None:
    """Boxes in a row, with arrows between them; each is (text, note, colour)."""
    axes.text(0, y + 0.19, title, weight='bold', color=INK, fontsize=11)
    width = 0.235
    for place, (text, note, colour) in enumerate(boxes):
        x = place * (width + 0.02)
        box = FancyBboxPatch((x, y - 0.1), width - 0.03, 0.22, boxstyle='round,pad=0.01', color=colour)
        axes.add_patch(box)
        ink = 'white' if colour == TRAINED else INK
        axes.text(x + (width - 0.03) / 2, y + 0.01, text, ha='center', va='center', color=ink, fontsize=9.5)
        axes.text(x + (width - 0.03) / 2, y - 0.165, note, ha='center', va='center', color=INK, fontsize=8)
        if place:
            axes.annotate('', (x - 0.012, y + 0.01), (x - 0.04, y + 0.01), arrowprops=dict(arrowstyle='->', color=INK))


def main() -> None:
    figure = new_figure(11, 4)
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    backbone = ('backbone', 'C features', TRAINED)
    fc = ('linear layer', 'N x C, trained', TRAINED)
    draw_chain(left, 'Before: a trained vector for each class', [backbone, fc, ('softmax', 'N scores', FIXED)], 0.72)
    ebv = [
        backbone,
        ('projection', 'd x C, trained', TRAINED),
        ('direction', 'v / |v|', FIXED),
        ('fixed vectors', 'N x d, computed', FIXED),
    ]
    draw_chain(left, 'EBV: the network learns where to point, the vectors stay', ebv, 0.2)
    left.set_xlim(-0.02, 1.02)
    left.set_ylim(-0.02, 1)
    left.axis('off')

    basis = make_basis(*SIZE)
    vectors = basis.vectors.double()
    pairs = torch.triu_indices(len(vectors), len(vectors), 1)
    angles = torch.rad2deg((vectors @ vectors.T)[pairs[0], pairs[1]].clamp(-1, 1).acos())
    random = torch.nn.functional.normalize(
        torch.randn(*SIZE, generator=torch.Generator().manual_seed(0)).double(), dim=1
    )
    others = torch.rad2deg((random @ random.T)[pairs[0], pairs[1]].clamp(-1, 1).acos())
    edges = torch.linspace(61.75, 118.25, 114).numpy()
    right.hist(others.numpy(), edges, color=FIXED, label=f'random vectors: from {float(others.min()):.0f}°')
    counts, _ = torch.histogram(angles.float(), torch.tensor(edges, dtype=torch.float32))
    scale = 0.5 * right.get_ylim()[1] / float(counts.max())
    right.bar(
        edges[:-1] + 0.25,
        (counts * scale).numpy(),
        0.7,
        color=TRAINED,
        label=f'this basis: from {basis.min_angle:.1f}°',
    )
    for place in (to_degrees(basis.bound), 180 - to_degrees(basis.bound)):
        right.axvline(place, color='#d1495b', linestyle='--', linewidth=1)
    right.plot(
        [],
        [],
        color='#d1495b',
        linestyle='--',
        linewidth=1,
        label=f'no basis can exceed {to_degrees(basis.bound):.1f}°',
    )
    right.set_yticks([])
    right.set_xlabel(f'angles between {SIZE[0]:,} vectors in {SIZE[1]} dimensions (degrees)')
    right.spines[['top', 'right', 'left']].set_visible(False)
    right.legend(frameon=False, fontsize=8.5, loc='upper center', bbox_to_anchor=(0.5, -0.16))
    save_figure(figure, Path(__file__).with_name('overview.png'))


if __name__ == '__main__':
    main()
