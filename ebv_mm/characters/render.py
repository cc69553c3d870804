"""A font's ideographs and Hangul as images of 32 x 32 pixels.

Which characters a font has is read with fontTools; the pixels are Pillow's. Each font is scaled and shifted as a whole
so that its median character fills ``INK`` pixels around the centre: fonts differ in how much room they leave.
"""

import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

SIZE = 32
INK = 28
# how many characters a font is measured by, and at which size
SAMPLED, MEASURED_AT = 400, 128
# the darkest pixel of a picture below this: nothing was drawn
FAINT = 64

HANGUL = (0xAC00, 0xD7A3)
# the unified ideographs of the first plane, the compatibility block with its 12 unified ones, and planes 2 and 3
RANGES = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF), HANGUL)


def is_hangul(codes: np.ndarray) -> np.ndarray:
    return (codes >= HANGUL[0]) & (codes <= HANGUL[1])


def is_character(code: int) -> bool:
    """A Hangul syllable or an ideograph; not one that Unicode declares to be another, such as U+F900 to be U+8C48."""
    return any(first <= code <= last for first, last in RANGES) and unicodedata.is_normalized('NFC', chr(code))


def covered(path: Path, face: int = 0) -> list[int]:
    """The characters that a font claims to have, in order."""
    with TTFont(path, lazy=True, fontNumber=face) as font:
        return sorted(filter(is_character, font.getBestCmap()))


def render(path: Path, face: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Codes (n,) int32 and images (n, 32, 32) uint8, ink bright, of what a font really draws.

    Left out are empty pictures, and every picture that a font gives to more than one character: placeholders, and
    characters that this font does not tell apart.
    """
    codes = covered(path, face)
    if not codes:
        return np.zeros(0, np.int32), np.zeros((0, SIZE, SIZE), np.uint8)
    font, origin = _fitted(path, face, codes)
    images = np.empty((len(codes), SIZE, SIZE), np.uint8)
    for image, code in zip(images, codes):
        canvas = Image.new('L', (SIZE, SIZE))
        ImageDraw.Draw(canvas).text(origin, chr(code), font=font, fill=255, anchor='ls')
        image[:] = canvas
    pictures = [image.tobytes() for image in images]
    count = Counter(pictures)
    keep = np.array([count[picture] == 1 for picture in pictures]) & (images.max((1, 2)) >= FAINT)
    return np.array(codes, np.int32)[keep], images[keep]


def _fitted(path: Path, face: int, codes: list[int]) -> tuple[ImageFont.FreeTypeFont, tuple[float, float]]:
    """The font at its size, and where its baseline begins on the canvas."""

    def at(size: int) -> ImageFont.FreeTypeFont:
        # the layout of raqm, where that is installed, would differ
        return ImageFont.truetype(str(path), size, index=face, layout_engine=ImageFont.Layout.BASIC)

    large = at(MEASURED_AT)
    places = np.linspace(0, len(codes) - 1, min(SAMPLED, len(codes))).astype(int)
    left, top, right, bottom = np.array([large.getbbox(chr(codes[place]), anchor='ls') for place in places]).T
    extent = np.median(np.maximum(right - left, bottom - top))
    if extent <= 0:  # most of its characters are empty
        return at(INK), (0.0, float(INK))
    size = max(1, round(MEASURED_AT * INK / extent))
    scale = size / MEASURED_AT
    centre = np.median((left + right) / 2) * scale, np.median((top + bottom) / 2) * scale
    return at(size), (round(SIZE / 2 - centre[0]), round(SIZE / 2 - centre[1]))
