"""Tables in a page of the documentation, between a line that names each of them and a line that ends it."""

from pathlib import Path
from typing import Mapping

from ebv_mm.output import whole_file

END = '<!-- end -->'


def fill(page: Path, blocks: Mapping[str, str]) -> None:
    """Put texts behind their lines; a page without one of these lines is refused, and stays as it is."""
    text = page.read_text()
    for begin, body in blocks.items():
        before, found, rest = text.partition(begin)
        if not found or END not in rest:
            raise ValueError(f'{page} has no line {begin!r} to put a table after; add it, and {END!r} behind')
        text = f'{before}{begin}\n{body}\n{END}{rest.split(END, 1)[1]}'
    with whole_file(page) as part:
        part.write_text(text)
