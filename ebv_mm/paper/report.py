"""One Markdown and one JSON table of what lies in the work dirs, with the paper's figures beside it."""

import csv
from math import isnan
from pathlib import Path
from typing import Dict, List, Optional

import numpy as np

from ..output import markdown_table, whole_file
from .experiment import Analysis, Experiment, write_json
from .origin import origin
from .reproduction import Reproduction
from .rows import Figure, Row, Study


def write_report(reproduction: Reproduction, folder: Path) -> List[Path]:
    """Write both files; returns their names. Rows that are not done have no measured figure."""
    table = reproduction.table
    rows = [row for row in table.rows if isinstance(row, Row)]
    studies = [row for row in table.rows if isinstance(row, Study)]
    figures = [line for row in rows for line in _figures(row, reproduction.experiments[row.config])]
    runs = [_run(experiment) for experiment in reproduction.experiments.values()]
    findings = {study.label: _findings(reproduction.analysis(study)) for study in studies}
    notes = {f'{row.label} ({row.name})': row.note for row in table.rows if row.note}
    content = dict(table=table.name, title=table.title, note=table.note, notes=notes, **origin())
    write_json(folder / f'{table.name}.json', dict(content, figures=figures, runs=runs, findings=findings))

    parts = [f'# {table.title}', table.note]
    if reproduction.smoke:
        parts.append('**A trial on noise: nothing here is a result.**')
    if figures:
        parts += [markdown_table([_cells(line) for line in figures]), _legend(figures)]
    for label, found in findings.items():
        parts += [f'## {label}', markdown_table(found) if found else 'Not done.']
    parts.append('\n'.join(f'- {name}: {note}.' for name, note in notes.items()))
    if runs:
        parts += ['## Runs', markdown_table(runs)]
    versions = ', '.join(f'{name} {version}' for name, version in content['versions'].items())
    parts.append(f'Written {content["time"]} at commit {content["commit"]}: {versions}.')
    with whole_file(folder / f'{table.name}.md') as part:
        part.write_text('\n\n'.join(filter(None, parts)) + '\n')
    return [folder / f'{table.name}{suffix}' for suffix in ('.md', '.json')]


def _figures(row: Row, experiment: Experiment) -> List[dict]:
    lines = []
    for test in row.tests:
        result = experiment.result(test)
        for figure in test.figures:
            measured = None if result is None else figure.measured(result['metrics'])
            lines.append(
                dict(
                    row=row.label,
                    config=row.config,
                    test=test.name,
                    metric=figure.metric,
                    published=_plain(figure.value),
                    source=figure.source,
                    borrowed=figure.borrowed,
                    measured=_plain(measured),
                    difference=_difference(figure, measured),
                )
            )
    return lines


def _plain(value: Optional[float]) -> object:
    """JSON has no NaN."""
    return 'NaN' if isinstance(value, float) and isnan(value) else value


def _difference(figure: Figure, measured: Optional[float]) -> Optional[float]:
    if figure.value is None or measured is None or isnan(figure.value) or isnan(measured):
        return None
    return round(measured - figure.value, 2)


def _cells(line: dict) -> Dict[str, str]:
    published = _number(line['published'])
    return {
        'row': line['row'],
        'config': line['config'],
        'test': line['test'],
        'metric': line['metric'],
        'paper': f'{published} *' if line['borrowed'] else published,
        'measured': _number(line['measured']),
        'difference': '' if line['difference'] is None else f'{line["difference"]:+.2f}',
    }


def _number(value: object) -> str:
    return f'{value:.2f}' if isinstance(value, (int, float)) else value or '-'


def _legend(figures: List[dict]) -> str:
    borrowed = {line['source']: None for line in figures if line['borrowed']}
    if not borrowed:
        return ''
    return f"\\* Borrowed, not the authors' run: {', '.join(borrowed)}."


def _run(experiment: Experiment) -> Dict[str, object]:
    """One training: how far, on what, how long, of which commit."""
    work, sessions = experiment.work, experiment.sessions
    state = work.progress
    if work.trained and not work.validated:
        state += '; cut off in its last validation, so the best of those before is tested'
    return {
        'run': experiment.folder.name,
        'state': state,
        'seed': experiment.seed,
        'GPUs': ', '.join(dict.fromkeys(str(s['gpus']) + (', rate scaled' if s['scaled'] else '') for s in sessions)),
        'images per GPU': experiment.images,
        'hours': round(work.hours, 2),
        'commit': ', '.join(dict.fromkeys(session['commit'] for session in sessions)),
        'checkpoint': work.to_test.name if work.to_test else '',
    }


def _findings(analysis: Analysis) -> List[Dict[str, object]]:
    if not analysis.done:
        return []
    reader = {'analysis/cka.py': _read_cka, 'analysis/capacity.py': _read_capacity}[analysis.study.tool]
    return reader(analysis.folder)


def _read_cka(folder: Path) -> List[Dict[str, object]]:
    """What the paper reads off its pictures: how much the first tenth, and the last layer, share with the others."""
    with np.load(folder / 'cka.npz') as found:
        maps = {'FC - FC': found['first'], 'EBV - EBV': found['second'], 'FC - EBV': found['across']}
    lines = []
    for name, values in maps.items():
        tenth = max(1, round(len(values) / 10))
        line = {'layers': name, 'mean CKA of the first tenth with the rest': np.nanmean(values[:tenth, tenth:])}
        line['of the last with the rest'] = np.nanmean(values[-1, :-1])
        lines.append({key: value if isinstance(value, str) else f'{value:.3f}' for key, value in line.items()})
    return lines


def _read_capacity(folder: Path) -> List[Dict[str, object]]:
    with (folder / 'capacity.csv').open(newline='') as file:
        return list(csv.DictReader(line for line in file if not line.startswith('#')))
