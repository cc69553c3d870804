"""Tables in a page of the documentation, between a line that names each of them and a line that ends it."""

from pathlib import Path
from typing import Mapping

from ebv_mm.output import whole_file

END = '<!-- end -->'


def filled(text: str, blocks: Mapping[str, str], name: str = 'the page') -> str:
    """The text of a page, with tables behind their lines; one without one of these lines is refused."""
    for begin, body in blocks.items():
        before, found, rest = text.partition(begin)
        if not found or END not in rest:
            raise ValueError(f'{name} has no line {begin!r} to put a table after; add it, and {END!r} behind')
        text = f'{before}{begin}\n{body}\n{END}{rest.split(END, 1)[1]}'
    return text


def fill(page: Path, blocks: Mapping[str, str]) -> None:
    """Put tables behind their lines in a page."""
    text = filled(page.read_text(), blocks, str(page))
    with whole_file(page) as part:
        part.write_text(text)
