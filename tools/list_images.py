"""Check a copy of the 100,000-class data set, and write the lists that its configs read.

python tools/list_images.py data/inat100k

finds its images (a folder for each class under train and val, or list files), counts classes and images against
100,000, 1.2 million and 0.6 million, opens a sample of them, and writes data/inat100k/train.txt and val.txt with a line
`path label` for each image. Other numbers are options; another data set of one folder for each class will do.
"""

import argparse
import random
import sys
from pathlib import Path
from typing import Dict, List, Optional

from PIL import Image

from ebv_mm.output import print_table, whole_file
from ebv_mm.paper.image_lists import ImageList, find_images, lines, number_classes


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=Path, help='of the unpacked data')
    parser.add_argument('--classes', type=int, default=100_000, metavar='N', help='default: 100000')
    parser.add_argument('--train', type=int, default=1_200_000, metavar='IMAGES', help='default: 1200000')
    parser.add_argument('--val', type=int, default=600_000, metavar='IMAGES', help='default: 600000')
    parser.add_argument('--open', type=int, default=200, metavar='K', help='images of a split to open (default: 200)')
    args = parser.parse_args(argv)
    try:
        lists = find_images(args.folder)
        wrong = check(args, lists)
    except (ValueError, OSError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    for sentence in wrong:
        print(f'error: {sentence}', file=sys.stderr)
    if wrong:
        print('no list was written', file=sys.stderr)
        return 1
    labels = number_classes(lists)
    for split, images in lists.items():
        with whole_file(args.folder / f'{split}.txt') as part, part.open('w') as file:
            file.writelines(lines(images, labels))
        print(f'wrote {args.folder / split}.txt')
    return 0


def check(args: argparse.Namespace, lists: Dict[str, ImageList]) -> List[str]:
    """Print what was found; returns what is wrong with it."""
    wrong = []
    rows = []
    for split, images in lists.items():
        counts = images.counts()
        opened, broken = open_some(args.folder, images, args.open)
        asked = getattr(args, split)
        rows.append(
            {
                'split': split,
                'found in': images.found,
                'images': len(images.files),
                'classes': len(counts),
                'of a class': f'{min(counts.values(), default=0)} to {max(counts.values(), default=0)}',
                'sizes seen': ', '.join(f'{width} x {height}' for width, height in sorted(opened)[:3]),
            }
        )
        if len(images.files) != asked:
            wrong.append(f'{split} has {len(images.files)} images, but {asked} are expected; --{split} tells others')
        if len(counts) != args.classes:
            wrong.append(f'{split} has {len(counts)} classes, but {args.classes} are expected; --classes tells others')
        wrong += [f'{file} is no whole image; download the archive again' for file in broken]
    print_table(rows)
    alone = set(lists['train'].classes) ^ set(lists['val'].classes)
    if alone:
        wrong.append(f'{len(alone)} classes are in one split only, such as {min(alone)!r}; the splits must share them')
    return wrong


def open_some(root: Path, images: ImageList, number: int):
    """The sizes of a random sample of images, and those that cannot be read."""
    sizes, broken = set(), []
    for file in random.Random(0).sample(images.files, min(number, len(images.files))):
        try:
            with Image.open(root / file) as image:
                image.load()
                sizes.add(image.size)
        except OSError:
            broken.append(file)
    return sizes, broken


if __name__ == '__main__':
    sys.exit(main())
