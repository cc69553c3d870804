"""A picture of a basis: how its angles are distributed."""

from pathlib import Path
from typing import Union

import torch

from ..basis import Basis
from ..basis.measure import to_degrees
from ..output import new_figure, save_figure

SAMPLE = 4000
BINS = 120
INK, BAR, BOUND = '#222222', '#4c78a8', '#d1495b'


def plot_angles(basis: Basis, path: Union[str, Path]) -> None:
    """Draw the histogram of the angles between all pairs of lines, with the smallest one and the bound marked.

    Of more than 4000 vectors a sample of that many, drawn with a fixed seed, is shown.
    """
    rows = torch.randperm(basis.num_classes, generator=torch.Generator().manual_seed(0))[:SAMPLE]
    vectors = basis.vectors[rows].double()
    cosines = (vectors @ vectors.T)[torch.triu(torch.ones(len(rows), len(rows), dtype=torch.bool), 1)]
    angles = torch.rad2deg(cosines.clamp(-1, 1).acos())
    smallest, bound = basis.min_angle, to_degrees(basis.bound)
    # bars begin exactly at the smallest angle, and end at its mirror image
    width = max(90 - min(smallest, bound), 0.05) * 2 / BINS
    beyond = BINS // 20
    low = min(smallest, 90 - width * BINS / 2) - width * (beyond + 0.01)
    high = 180 - low
    count = round((high - low) / width)
    counts = torch.histc(angles, count, low, high)
    width = (high - low) / count

    figure = new_figure(8, 4.2)
    axes = figure.add_subplot()
    axes.bar(low + width * (torch.arange(count) + 0.5), counts / max(len(angles), 1) * 100, width, color=BAR)
    axes.axvline(smallest, color=INK, linewidth=1.2, label=f'smallest: {smallest:.3f}°')
    axes.axvline(180 - smallest, color=INK, linewidth=1.2)
    bound_label = f'no basis can have more than {bound:.3f}°'
    axes.axvline(bound, color=BOUND, linewidth=1.2, linestyle='--', label=bound_label)
    axes.axvline(180 - bound, color=BOUND, linewidth=1.2, linestyle='--')
    axes.set_xlim(low, high)
    axes.set_xlabel('angle between two vectors (degrees)')
    axes.set_ylabel('share of all pairs (%)')
    axes.set_title(f'{basis.num_classes} vectors in R$^{{{basis.dim}}}$, {basis.method}', loc='left', color=INK)
    axes.spines[['top', 'right']].set_visible(False)
    axes.legend(frameon=False, loc='upper center', bbox_to_anchor=(0.5, -0.16), ncols=2)
    save_figure(figure, path)
