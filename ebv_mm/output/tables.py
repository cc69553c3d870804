"""Tables of rows that are dicts from column to cell, on a terminal and for Markdown."""

import re
from typing import List, Mapping, Optional, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

Row = Mapping[str, object]
# wider than any table: rich would cut cells off to fit a terminal, and to fit 80 columns where there is none
WIDTH = 10_000
NUMBER = re.compile(r'[-+~]?\.?\d.*|[-+]|nan|')


def print_table(rows: Sequence[Row], title: str = '', console: Optional[Console] = None) -> None:
    """Print rows with their whole cells, numbers to the right; no colour codes where the output is no terminal."""
    console = console or Console()
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify='left', show_edge=False, pad_edge=False)
    for name in columns(rows):
        numeric = all(NUMBER.fullmatch(text(row, name)) for row in rows)
        table.add_column(name, justify='right' if numeric else 'left', no_wrap=True)
    for row in rows:
        table.add_row(*(text(row, name) for name in columns(rows)))
    wide = Console(
        file=console.file,
        force_terminal=console.is_terminal,
        width=WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with wide.capture() as capture:
        wide.print(table)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    print('\n'.join(line for line in lines if line), file=console.file, flush=True)


def markdown_table(rows: Sequence[Row]) -> str:
    """The same as Markdown."""
    names = columns(rows)
    lines = [names, ['---'] * len(names), *([text(row, name) for name in names] for row in rows)]
    return '\n'.join('| ' + ' | '.join(cell.replace('|', '\\|') for cell in line) + ' |' for line in lines)


def columns(rows: Sequence[Row]) -> List[str]:
    """All columns, in the order in which rows name them."""
    return list(dict.fromkeys(name for row in rows for name in row))


def text(row: Row, name: str) -> str:
    value = row.get(name)
    return '' if value is None else str(value)
