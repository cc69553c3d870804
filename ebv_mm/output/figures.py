"""Pictures, the only place that asks for matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING, Union

from .files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> 'Figure':
    """An empty picture of so many inches, whose parts keep out of each other's way."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('a picture needs matplotlib; install it with: pip install matplotlib') from error
    return Figure(figsize=(width, height), layout='constrained')


def save_figure(figure: 'Figure', path: Union[str, Path], dpi: int = 120) -> None:
    """Write a picture, whole or not at all, under the very name that is given."""
    with whole_file(path) as part:
        # told, because to a name without a suffix matplotlib would add one
        figure.savefig(part, dpi=dpi, format=part.suffix[1:] or 'png')
