"""The paper's figures: similarity of all pairs of layers as heat maps side by side."""

from pathlib import Path
from typing import NamedTuple, Sequence, Union

import numpy as np

from ..output import new_figure, save_figure

INK, UNDEFINED = '#222222', '#bbbbbb'


class HeatMap(NamedTuple):
    """One square: values[i, j] compares layer i of ``rows``, counted upwards, with layer j of ``columns``."""

    values: np.ndarray
    rows: str
    columns: str


def draw_heat_maps(maps: Sequence[HeatMap], path: Union[str, Path], caption: str = '') -> None:
    """Draw similarities between 0 (dark) and 1 (bright) on one scale; undefined ones are grey."""
    figure = new_figure(4.3 * len(maps) + 0.9, 4.6)
    figure.get_layout_engine().set(wspace=0.06)
    axes = figure.subplots(1, len(maps), squeeze=False)[0]
    for axis, (values, rows, columns) in zip(axes, maps):
        height, width = values.shape
        axis.set_facecolor(UNDEFINED)
        # Layers are counted from 1, so that layer k is the square around k.
        image = axis.imshow(
            np.ma.masked_invalid(values),
            cmap='magma',
            vmin=0,
            vmax=1,
            origin='lower',
            interpolation='nearest',
            extent=(0.5, width + 0.5, 0.5, height + 0.5),
            aspect='auto',
        )
        axis.set_box_aspect(1)
        axis.set_title(f'{rows} – {columns}', color=INK)
        axis.set_xlabel(f'layer of {columns}')
        axis.set_ylabel(f'layer of {rows}')
        for ticks in (axis.xaxis, axis.yaxis):
            ticks.get_major_locator().set_params(integer=True, min_n_ticks=1)
        axis.tick_params(length=2, colors=INK)
        axis.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=list(axes), label='CKA', shrink=0.8, pad=0.015)
    bar.outline.set_visible(False)
    if caption:
        figure.supxlabel(caption, fontsize=8, color='#666666')
    save_figure(figure, path, dpi=150)
