"""Tables are whole in a pipe, on a narrow terminal and in Markdown."""

import io

import pytest
from rich.console import Console

from ebv_mm.output import markdown_table, print_table

ROWS = [
    {'method': 'transversal', 'max |cos|': '0.111111', 'time': None},
    {'method': '[bold]x' + 90 * 'y', 'max |cos|': '~0.05', 'time': '1.5 s', 'gap': '-'},
]


@pytest.mark.parametrize('columns', ['10', '80', None])
def test_no_cell_is_cut_wrapped_or_coloured_in_a_pipe(capsys, monkeypatch, columns):
    if columns:
        monkeypatch.setenv('COLUMNS', columns)
    print_table(ROWS, title='All of them')
    title, header, _, *lines = capsys.readouterr().out.splitlines()
    assert title == 'All of them'
    assert header.split() == ['method', 'max', '|cos|', 'time', 'gap']
    assert [line.split() for line in lines] == [
        ['transversal', '0.111111'],
        ['[bold]x' + 90 * 'y', '~0.05', '1.5', 's', '-'],
    ]
    assert lines[0].startswith('transversal ') and lines[0].endswith('0.111111')


def test_numbers_are_to_the_right_and_words_to_the_left(capsys):
    print_table([{'d': 8, 'by': 'a'}, {'d': 1024, 'by': 'abc'}])
    assert capsys.readouterr().out.splitlines()[2:] == ['   8   a', '1024   abc']


def test_a_narrow_terminal_gets_whole_cells_and_a_style():
    stream = io.StringIO()
    print_table(ROWS, console=Console(file=stream, force_terminal=True, width=40, color_system='standard'))
    assert 90 * 'y' in stream.getvalue() and '\x1b[' in stream.getvalue()


def test_markdown():
    assert markdown_table([{'a': 1, '|b|': None}, {'a': 'x|y', 'c': 2.5}]).splitlines() == [
        '| a | \\|b\\| | c |',
        '| --- | --- | --- |',
        '| 1 |  |  |',
        '| x\\|y |  | 2.5 |',
    ]


def test_an_old_terminal_gets_plain_letters():
    stream = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
    print_table(ROWS, console=Console(file=stream))
    assert b'transversal' in stream.buffer.getvalue()
