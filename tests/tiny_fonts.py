"""Tiny fonts, made here: a character is a column of dots that spells its code point."""

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from ebv_mm.characters import Font

EM = 1000
BITS = 8


def box(pen, left, bottom, right, top):
    pen.moveTo((left, bottom))
    pen.lineTo((left, top))
    pen.lineTo((right, top))
    pen.lineTo((right, bottom))
    pen.closePath()


def glyph(code, bold=0):
    """Two lines, and a dot for each set bit of the code point, in a grid of 2 x 4."""
    pen = TTGlyphPen(None)
    box(pen, 0, 0, EM, 60 + bold)
    box(pen, 0, 100, 40 + bold, EM)
    for bit in range(BITS):
        if code >> bit & 1:
            left, bottom = 100 + 450 * (bit % 2), 150 + 210 * (bit // 2)
            box(pen, left - bold, bottom - bold, left + 300 + bold, bottom + 120 + bold)
    return pen.glyph()


def write_font(path, codes, *, empty=(), placeholder=(), bold=0, lift=0):
    """A font of ``codes``; those of ``empty`` draw nothing, those of ``placeholder`` all draw the same."""
    names = {code: 'shared' if code in placeholder else f'c{code:x}' for code in [*codes, *empty, *placeholder]}
    nothing, shared = TTGlyphPen(None).glyph(), glyph(0xA5, bold)
    glyphs = {'.notdef': shared, 'shared': shared}
    glyphs.update({f'c{code:x}': nothing if code in empty else glyph(code, bold) for code in [*codes, *empty]})
    builder = FontBuilder(EM)
    builder.setupGlyphOrder(list(glyphs))
    builder.setupCharacterMap(names)
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics({name: (EM, 0) for name in glyphs})
    builder.setupHorizontalHeader(ascent=EM + lift, descent=-200)
    builder.setupNameTable(dict(familyName=path.stem, styleName='Regular'))
    builder.setupOS2()
    builder.setupPost()
    path.parent.mkdir(parents=True, exist_ok=True)
    builder.save(path)


HAN = range(0x4E00, 0x4E40)
HANGUL = range(0xAC40, 0xAC60)  # other dots than those of HAN
CATALOGUE = (
    Font('fonts-one', 'one.ttf', 'one'),
    Font('fonts-one', 'one-bold.ttf', 'one'),
    Font('fonts-two', 'two.ttf', 'two', hangul='one'),
    Font('fonts-three', 'three.ttf', 'three'),
)


def write_fonts(folder):
    """The fonts of the catalogue, as if their packages had been unpacked: three families of Han, of Hangul two."""
    fonts = folder / 'fonts'
    write_font(fonts / 'fonts-one' / 'one.ttf', [*HAN, *HANGUL])
    write_font(fonts / 'fonts-one' / 'one-bold.ttf', [*HAN, *HANGUL], bold=20)
    write_font(fonts / 'fonts-two' / 'two.ttf', [*HAN[:48], *HANGUL], bold=8, lift=300)
    write_font(fonts / 'fonts-three' / 'three.ttf', HAN[16:], bold=14, placeholder=HANGUL)
