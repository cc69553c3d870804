"""Rendered fonts on disk: for each an array of images, which is memory-mapped, and one of codes."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import PIL

from ..output import whole_file
from .catalogue import CATALOGUE, Font
from .packages import font_path
from .render import SIZE, is_hangul, render


class Store:
    """The images of all rendered fonts, one row each; made by ``python -m ebv_mm.characters FOLDER``.

    Attributes:
        fonts: The rendered fonts, in the catalogue's order.
        codes: (M,) code point of each image.
        font: (M,) index into ``fonts``.
        family: (M,) index into ``families``.
    """

    def __init__(self, folder: str | Path, catalogue: Sequence[Font] = CATALOGUE) -> None:
        self.folder, self.catalogue = Path(folder), catalogue
        self.fonts = [font for font in catalogue if is_rendered(self.folder, font)]
        if not self.fonts:
            raise FileNotFoundError(
                f'there are no rendered characters in {str(folder)!r}; make them with: '
                f'python -m ebv_mm.characters {folder}'
            )
        self.families = sorted({family for font in self.fonts for family in font.families})
        codes = [np.load(_files(self.folder, font)['codes']) for font in self.fonts]
        self._images = [np.load(_files(self.folder, font)['images'], mmap_mode='r') for font in self.fonts]
        sizes = [len(part) for part in codes]
        self.codes = np.concatenate(codes)
        self.font = np.repeat(np.arange(len(self.fonts), dtype=np.int16), sizes)
        self._first = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        index = {family: number for number, family in enumerate(self.families)}
        of_font = np.array([[index[family] for family in font.families] for font in self.fonts], np.int16)
        self.family = of_font[self.font, is_hangul(self.codes).astype(int)]

    def __reduce__(self) -> tuple:
        """Opened anew by each worker, which would else receive the images themselves."""
        return Store, (self.folder, self.catalogue)

    def __len__(self) -> int:
        return len(self.codes)

    def image(self, number: int) -> np.ndarray:
        """One image (32, 32), a view of the file."""
        font = self.font[number]
        return self._images[font][number - self._first[font]]

    def images(self, numbers: np.ndarray) -> np.ndarray:
        """Many images (n, 32, 32), read file by file."""
        out = np.empty((len(numbers), SIZE, SIZE), np.uint8)
        for font, images in enumerate(self._images):
            chosen = np.flatnonzero(self.font[numbers] == font)
            out[chosen] = images[numbers[chosen] - self._first[font]]
        return out


def is_rendered(folder: Path, font: Font) -> bool:
    return _files(folder, font)['about'].exists()


def add(folder: Path, font: Font) -> int:
    """Render a font into the store; returns how many images it has."""
    path = font_path(folder, font)
    codes, images = render(path, font.face)
    files = _files(folder, font)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    about = dict(font._asdict(), images=len(codes), sha256=digest, pillow=PIL.__version__)
    for name, array in (('images', images), ('codes', codes)):
        with whole_file(files[name]) as part:
            np.save(part, array)
    # written last: the font counts as rendered from here on
    with whole_file(files['about']) as part:
        part.write_text(json.dumps(about, indent=1) + '\n')
    return len(codes)


def _files(folder: Path, font: Font) -> dict[str, Path]:
    base = folder / 'rendered'
    return dict(
        images=base / f'{font.name}.images.npy', codes=base / f'{font.name}.codes.npy', about=base / f'{font.name}.json'
    )
