"""Lists of the images of a classification data set, from whatever layout it came in. Imports no host."""

import csv
import os
import re
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

IMAGES = ('.jpg', '.jpeg', '.png', '.webp', '.bmp')
# What the folder or the list of each split is called here and there.
SPLITS = {
    'train': ('train', 'training', 'train_images', 'trainset'),
    'val': ('val', 'valid', 'validation', 'test', 'testing', 'val_images', 'test_images', 'valset', 'testset'),
}


class ImageList(NamedTuple):
    """The images of a split.

    Args:
        files: Paths below the root of the data set, with slashes.
        classes: The class of each, as the layout names it.
        found: Where they were found.
    """

    files: List[str]
    classes: List[str]
    found: str

    def counts(self) -> Dict[str, int]:
        """How many images each class has."""
        counts: Dict[str, int] = {}
        for name in self.classes:
            counts[name] = counts.get(name, 0) + 1
        return counts


def find_images(root: Path) -> Dict[str, ImageList]:
    """The splits of a data set: a folder with a folder for each class, or a list file, in it or in a folder within.

    Raises:
        FileNotFoundError: Where a split has neither, or several of them.
    """
    return {split: _find_split(root, split) for split in SPLITS}


def number_classes(lists: Dict[str, ImageList]) -> Dict[str, int]:
    """A label for each class, the same in all splits: by number where all classes are numbers, else by name."""
    names = {name for images in lists.values() for name in images.classes}
    numeric = all(name.isdecimal() for name in names)
    return {name: label for label, name in enumerate(sorted(names, key=(lambda n: (int(n), n)) if numeric else None))}


def lines(images: ImageList, labels: Dict[str, int]) -> Iterator[str]:
    """What a list file holds, as mmpretrain's ``CustomDataset`` reads it."""
    return (f'{file} {labels[name]}\n' for file, name in zip(images.files, images.classes))


def _find_split(root: Path, split: str) -> ImageList:
    # one level down too: archives often hold one folder that holds everything
    places = [root, *sorted(path for path in root.iterdir() if path.is_dir())]
    folders = [place / name for place in places for name in SPLITS[split] if _has_class_folders(place / name)]
    if len(folders) == 1:
        return _from_folders(root, folders[0])
    tables = [file for place in places for file in sorted(place.glob('*.*')) if _is_list_of(file, split)]
    tables = [file for file in tables if file != root / f'{split}.txt'] or tables  # which a first run has written
    if not folders and len(tables) == 1:
        return _from_table(root, tables[0])
    found = ', '.join(str(path) for path in folders or tables) or 'nothing of that kind'
    raise FileNotFoundError(
        f'{root} must have one folder of class folders called {" or ".join(SPLITS[split][:3])}, or one list file '
        f'{split}.txt or {split}.csv, but it has {found}; rename what is there'
    )


def _has_class_folders(folder: Path) -> bool:
    return folder.is_dir() and any(path.is_dir() for path in folder.iterdir())


def _from_folders(root: Path, folder: Path) -> ImageList:
    files, classes = [], []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not entry.is_dir():
            continue
        for path, _, names in sorted(os.walk(entry.path)):
            for name in sorted(names):
                if name.lower().endswith(IMAGES):
                    files.append(Path(path, name).relative_to(root).as_posix())
                    classes.append(entry.name)
    return ImageList(files, classes, str(folder))


def _is_list_of(file: Path, split: str) -> bool:
    words = re.split(r'[\W_]+', file.stem.lower())
    return file.suffix.lower() in ('.txt', '.csv', '.tsv', '.lst') and any(name in words for name in SPLITS[split])


def _from_table(root: Path, table: Path) -> ImageList:
    """Each line has an image and its class, in any order, apart by blanks, commas or tabs; a header is skipped."""
    files, classes = [], []
    for number, line in enumerate(table.read_text().splitlines(), 1):
        cells = _cells(line)
        if not cells:
            continue
        pair = _image_and_class(cells)
        if pair is None:
            if not files:  # a header
                continue
            raise ValueError(f'{table}, line {number}: {line!r} has not one image and its class; mend it')
        files.append(pair[0])
        classes.append(pair[1])
    if not files:
        raise ValueError(f'{table} names no image ({", ".join(IMAGES)}); give each a line `path label`')
    below = next((folder for folder in (root, table.parent) if (folder / files[0]).is_file()), None)
    if below is None:
        raise FileNotFoundError(f'{table} names {files[0]}, which is neither below {root} nor beside the list; move it')
    prefix = '' if below == root else f'{below.relative_to(root).as_posix()}/'
    return ImageList([prefix + file for file in files], classes, str(table))


def _cells(line: str) -> List[str]:
    for separator in ('\t', ','):
        if separator in line:
            return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    return line.rsplit(maxsplit=1)


def _image_and_class(cells: List[str]) -> Optional[Tuple[str, str]]:
    images = [cell for cell in cells if cell.lower().endswith(IMAGES)]
    others = [cell for cell in cells if cell not in images and cell]
    if len(images) != 1 or len(others) != 1:
        return None
    return images[0].replace('\\', '/').removeprefix('./'), others[0]
