"""``--names``: some of the trainings of a study, in the order of the command line."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar('T')


def add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--names', nargs='+', metavar='NAME', help='only these of their trainings, in this order; --dry-run lists all'
    )


def chosen(trainings: Mapping[str, T], names: Sequence[str] | None, parser: argparse.ArgumentParser) -> list[T]:
    """The trainings with these names, all without names; an unknown name ends the program."""
    strangers = [name for name in names or () if name not in trainings]
    if strangers:
        parser.error(f'--names {strangers[0]}: no training of these studies; --dry-run lists them')
    return [trainings[name] for name in names or trainings]
