"""Make the data set of written characters: ``python -m ebv_mm.characters FOLDER``.

Downloads Debian's font packages into the folder (0.5 GB, nothing is installed), renders them (some minutes on one core)
and says how many characters and images there are. What is there already is not done again.
"""

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..output import Progress, print_table
from .catalogue import CATALOGUE, Font
from .compare import Pair, likeness, nearest_neighbour
from .packages import MissingFontsError, fetch
from .split import split_by_family
from .store import Store, add, is_rendered


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    fonts = [font for font in CATALOGUE if not args.packages or font.package in args.packages]
    unknown = set(args.packages or ()) - {font.package for font in CATALOGUE}
    if unknown:
        print(
            f'error: unknown packages {", ".join(sorted(unknown))}; --list shows those of the catalogue',
            file=sys.stderr,
        )
        return 2
    if args.list:
        return _list(args.folder)
    try:
        make(args.folder, fonts)
    except MissingFontsError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    store = Store(args.folder)
    describe(store)
    if args.likeness:
        rows = [
            {
                'the same': f'{pair.same:.1%}',
                'correlation': f'{pair.median:.2f}',
                **dict(zip(Pair._fields[2:], pair[2:])),
            }
            for pair in likeness(store)[:30]
        ]
        print_table(rows, 'fonts of different families: pictures that are nearly the same, median correlation of all')
    for num_classes in args.floor or ():
        floor(store, num_classes, args.min_train, args.max_test)
    return 0


def make(folder: Path, fonts: Sequence[Font]) -> None:
    """Fetch and render what is missing, font by font."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [font for font in fonts if not is_rendered(folder, font)]
    with Progress() as progress:
        for number, font in enumerate(missing):
            progress.show('fonts', number, len(missing), f'{font.package}, {font.file}')
            fetch(folder, font.package)
            add(folder, font)
        progress.show('fonts', len(missing), len(missing), finished=True)


def describe(store: Store) -> None:
    """Print the sizes of the data set."""
    sizes = f'{len(store):,} images of {len(np.unique(store.codes)):,} characters'
    rows = []
    for least in (1, 2, 4, 8, 12):
        try:
            split = split_by_family(store, min_train=least)
        except ValueError:  # none has so many
            break
        counts = dict(classes=split.codes, train=split.train, test=split.test)
        rows.append({'training images, at least': least, **{name: f'{len(part):,}' for name, part in counts.items()}})
    print_table(rows, f'{sizes}, {len(store.fonts)} fonts of {len(store.families)} families')


def floor(store: Store, num_classes: int, min_train: int, max_test: int | None) -> None:
    """Print the accuracy of the nearest neighbour."""
    split = split_by_family(store, num_classes or None, min_train=min_train)
    shown = 0.0
    with Progress() as progress:
        for seen, accuracy in nearest_neighbour(store, split, max_test):
            shown = accuracy
            progress.show('training images', seen, len(split.train))
    tested = min(max_test or len(split.test), len(split.test))
    print(
        f'nearest neighbour on pixels, {len(split.codes):,} classes, {len(split.train):,} training images, '
        f'{tested:,} tested: {shown:.1f} %',
        flush=True,
    )


def _list(folder: Path) -> int:
    print_table(
        [
            dict(
                package=font.package,
                file=font.file,
                family=' / '.join(dict.fromkeys(font.families)),
                rendered='yes' if is_rendered(folder, font) else 'no',
            )
            for font in CATALOGUE
        ],
        'families of ideographs / Hangul',
    )
    if not shutil.which('apt-get'):
        print('there is no apt-get here: unpack the packages into FOLDER/fonts/PACKAGE yourself')
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='python -m ebv_mm.characters', description=__doc__)
    parser.add_argument('folder', type=Path, help='where packages, fonts and images go')
    parser.add_argument('--list', action='store_true', help='only list the fonts and their packages')
    parser.add_argument('--packages', nargs='+', metavar='PACKAGE', help='only these, in place of all')
    parser.add_argument('--likeness', action='store_true', help='which families look alike')
    parser.add_argument('--floor', type=int, nargs='+', metavar='N', help='nearest neighbour on N classes; 0 for all')
    parser.add_argument('--min-train', type=int, default=1, help='of the classes of --floor: training images of each')
    parser.add_argument('--max-test', type=int, help='of --floor: test images, chosen at random')
    return parser


if __name__ == '__main__':
    sys.exit(main())
