"""Which fonts, and which of them are one design.

A family is one design: weights of a typeface, and typefaces drawn from the same outlines. A character is never tested
in a family in which it was trained, so a family must not be split in two. Some fonts took their Hangul from one design
and their ideographs from another, hence a family for each script. ``python -m ebv_mm.characters FOLDER --likeness``
measures which families look alike: none of two share more than one picture in twenty.
"""

from typing import NamedTuple


class Font(NamedTuple):
    """One face of a font file in a Debian package; ``hangul`` is the family of its Hangul, if not that of its Han."""

    package: str
    file: str
    family: str
    hangul: str | None = None
    face: int = 0

    @property
    def name(self) -> str:
        """File name without its ending; no two fonts of the catalogue share it."""
        return self.file.rsplit('.', 1)[0]

    @property
    def families(self) -> tuple[str, str]:
        """Of ideographs, and of Hangul."""
        return self.family, self.hangul or self.family


# In each family the first font is the one that is tested.
CATALOGUE = (
    Font('fonts-noto-cjk', 'NotoSansCJK-Regular.ttc', 'noto-sans'),
    Font('fonts-noto-cjk', 'NotoSansCJK-Bold.ttc', 'noto-sans'),
    Font('fonts-noto-cjk-extra', 'NotoSansCJK-Light.ttc', 'noto-sans'),
    Font('fonts-noto-cjk', 'NotoSerifCJK-Regular.ttc', 'noto-serif'),
    Font('fonts-noto-cjk', 'NotoSerifCJK-Bold.ttc', 'noto-serif'),
    Font('fonts-noto-cjk-extra', 'NotoSerifCJK-Light.ttc', 'noto-serif'),
    Font('fonts-hanazono', 'HanaMinA.ttf', 'hanazono'),
    Font('fonts-hanazono', 'HanaMinB.ttf', 'hanazono'),
    Font('fonts-babelstone-han', 'BabelStoneHan.ttf', 'arphic-ming'),
    Font('fonts-arphic-uming', 'uming.ttc', 'arphic-ming'),
    Font('fonts-arphic-ukai', 'ukai.ttc', 'arphic-kai'),
    Font('fonts-ipamj-mincho', 'ipamjm.ttf', 'ipa-mincho'),
    Font('fonts-ipafont-mincho', 'ipam.ttf', 'ipa-mincho'),
    Font('fonts-ipafont-gothic', 'ipag.ttf', 'ipa-gothic'),
    Font('fonts-cns11643-sung', 'TW-Sung-98_1.ttf', 'cns-sung'),
    Font('fonts-cns11643-sung', 'TW-Sung-Ext-B-98_1.ttf', 'cns-sung'),
    Font('fonts-cns11643-kai', 'TW-Kai-98_1.ttf', 'cns-kai'),
    Font('fonts-cns11643-kai', 'TW-Kai-Ext-B-98_1.ttf', 'cns-kai'),
    Font('fonts-cwtex-ming', 'cwming.ttf', 'cwtex-ming'),
    Font('fonts-cwtex-kai', 'cwkai.ttf', 'arphic-kai'),
    Font('fonts-cwtex-heib', 'cwheib.ttf', 'cwtex-hei'),
    Font('fonts-cwtex-fs', 'cwfs.ttf', 'cwtex-fangsong'),
    Font('fonts-cwtex-yen', 'cwyen.ttf', 'cwtex-hei'),
    Font('fonts-wqy-zenhei', 'wqy-zenhei.ttc', 'zenhei'),
    Font('fonts-wqy-microhei', 'wqy-microhei.ttc', 'droid'),
    Font('fonts-droid-fallback', 'DroidSansFallbackFull.ttf', 'droid'),
    Font('fonts-lxgw-wenkai', 'LXGWWenKai-Regular.ttf', 'klee'),
    Font('fonts-lxgw-wenkai', 'LXGWWenKai-Bold.ttf', 'klee'),
    Font('fonts-seto', 'setofont.ttf', 'seto'),
    Font('fonts-seto', 'setofont-ex.ttf', 'seto'),
    Font('fonts-vlgothic', 'VL-Gothic-Regular.ttf', 'mplus'),
    Font('fonts-horai-umefont', 'ume-tgo4.ttf', 'ume-gothic'),
    Font('fonts-horai-umefont', 'ume-tmo3.ttf', 'ume-mincho'),
    Font('fonts-morisawa-bizud-gothic', 'BIZUDGothic-Regular.ttf', 'biz-gothic'),
    Font('fonts-morisawa-bizud-mincho', 'BIZUDMincho-Regular.ttf', 'ipa-mincho'),
    Font('fonts-oradano-mincho-gsrr', 'OradanoGSRR.ttf', 'oradano'),
    Font('fonts-baekmuk', 'batang.ttf', 'baekmuk-batang'),
    Font('fonts-baekmuk', 'dotum.ttf', 'baekmuk-dotum'),
    Font('fonts-baekmuk', 'gulim.ttf', 'baekmuk-gulim'),
    Font('fonts-baekmuk', 'hline.ttf', 'baekmuk-headline'),
    Font('fonts-unfonts-core', 'UnBatang.ttf', 'un-batang'),
    Font('fonts-unfonts-core', 'UnDotum.ttf', 'un-dotum'),
    Font('fonts-unfonts-core', 'UnGraphic.ttf', 'un-graphic'),
    Font('fonts-unfonts-core', 'UnGungseo.ttf', 'un-gungseo'),
    Font('fonts-unfonts-core', 'UnPilgi.ttf', 'un-pilgi'),
    Font('fonts-nanum', 'NanumGothic.ttf', 'nanum-gothic'),
    Font('fonts-nanum', 'NanumMyeongjo.ttf', 'nanum-myeongjo'),
    Font('fonts-nanum', 'NanumBarunGothic.ttf', 'nanum-barun'),
    Font('fonts-nanum', 'NanumSquareRoundR.ttf', 'nanum-square'),
    Font('fonts-nanum-extra', 'NanumPen.ttf', 'nanum-pen'),
    Font('fonts-alee', 'Eunjin.ttf', 'eunjin'),
    Font('fonts-alee', 'Guseul.ttf', 'guseul'),
)
