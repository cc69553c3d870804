"""The tables as data: complete, in agreement with the page, and every borrowed figure marked."""

import math
import re
from pathlib import Path

import pytest

from ebv_mm.paper import TABLES, Row, Study
from ebv_mm.paper.needs import DATA

REPO = Path(__file__).parents[2]
PAGE = (REPO / 'docs' / 'experiments.md').read_text()
ROWS = [(table, row) for table in TABLES.values() for row in table.rows]
MODELS = [(table, row) for table, row in ROWS if isinstance(row, Row)]


def identify(value: object) -> str:
    return getattr(value, 'name', '')


@pytest.mark.parametrize(('table', 'row'), ROWS, ids=identify)
def test_what_a_row_names_exists(table, row):
    assert row.configs or isinstance(row, Study)
    for config in row.configs:
        assert (REPO / 'configs' / f'{config}.py').is_file()
    if isinstance(row, Study):
        assert (REPO / 'tools' / row.tool).is_file()
    else:
        assert len({test.name for test in row.tests}) == len(row.tests) >= 1


@pytest.mark.parametrize(('table', 'row'), MODELS, ids=identify)
def test_the_page_has_every_figure_beside_its_config(table, row):
    lines = '\n'.join(line for line in PAGE.splitlines() if f'(../configs/{row.config}.py)' in line)
    for figure in (figure for test in row.tests for figure in test.figures if figure.value is not None):
        text = 'NaN' if math.isnan(figure.value) else f'{figure.value:g}0?'
        found = re.search(rf'(?<![\d.]){text}(?!\d)', lines)
        assert found, (figure, lines)
        # a star closes the cell, or follows the figure
        if figure.borrowed:
            assert '\\*' in lines[found.end() :].split('|')[0], figure


def test_ebv_figures_are_the_authors_and_torchvisions_are_not():
    for _, row in MODELS:
        for figure in (figure for test in row.tests for figure in test.figures):
            if '_ebv_' in row.config:
                assert not figure.borrowed
            if figure.value in (79.51, 80.04, 76.49, 76.81, 76.13):
                assert figure.source == 'torchvision'


def test_work_dirs_are_not_shared_by_different_models():
    folders = {}
    for _, row in ROWS:
        for config in row.configs:
            assert folders.setdefault(config.rsplit('/', 1)[-1], config) == config
    studies = {row.name for _, row in ROWS if isinstance(row, Study)}
    assert not studies & set(folders) and 'smoke' not in folders


def test_the_page_tells_how_many_models_a_table_trains():
    for table in TABLES.values():
        models = {config for row in table.rows for config in row.configs}
        (line,) = re.findall(rf'^\| `{table.name}` \|.*$', PAGE, re.MULTILINE)
        assert line.split('|')[3].strip() == (str(len(models)) if models else 'none')


def test_data_are_where_the_page_says():
    for root in DATA:
        assert f'`{"/".join(root.split("/")[:2])}`' in PAGE
