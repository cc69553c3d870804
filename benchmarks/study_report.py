"""The tables and the picture of docs/results.md, from the records of the runs."""

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from pages import filled
from rich.console import Console
from run_records import MEASURED, Record
from studies import FC, REPO, STUDIES, TAU, Study

from ebv_mm.output import markdown_table, new_figure, save_figure, whole_file

PAGE = REPO / 'docs' / 'results.md'
# The comparisons with FC: those of the first table, and of the picture. Every other study has a table of its own.
COMPARISONS = ('lt100', 'lt100-bf16', 'lt100-step', 'lt100-8e', 'lt10', 'voc-det', 'voc-seg', 'voc-seg-long')
MAIN = ('accuracy/top1', 'mIoU', 'coco/bbox_mAP', 'coco/segm_mAP')
# The page asks for a table by its name.
MARKER = '<!-- table: {} -->'
ASKED = re.compile(MARKER.format(r'(\S+)'))

Records = dict[str, Record]


def mean_and_spread(values: Sequence[float], sign: str = '') -> str:
    """The mean and, of several values, the standard deviation (of the sample, n - 1)."""
    mean = f'{statistics.mean(values):{sign}.1f}'
    return f'{mean} ± {statistics.stdev(values):.1f}' if len(values) > 1 else mean


def done(study: Study, setting: str, records: Records) -> list[Record]:
    return [records[run.name] for run in study.settings[setting] if run.name in records]


def differences(study: Study, setting: str, metric: str, records: Records) -> list[float]:
    """How far a setting is ahead of FC, seed by seed, for the seeds that both have."""
    fc = {record.seed: record.last(metric) for record in done(study, FC, records)}
    return [r.last(metric) - fc[r.seed] for r in done(study, setting, records) if r.seed in fc]


def comparison(records: Records) -> list[dict[str, object]]:
    """All settings that are compared with FC: means, and the difference to FC seed by seed."""
    rows = []
    for study in (STUDIES[name] for name in COMPARISONS):
        begun = len(rows)
        for setting in study.settings:
            ended = done(study, setting, records)
            for metric in (metric for metric in study.metrics if ended and metric in MAIN):
                ahead = [] if setting == FC else differences(study, setting, metric, records)
                rows.append(
                    {
                        'task': study.title if len(rows) == begun else '',
                        'classifier': setting,
                        'figure': study.metrics[metric],
                        'seeds': len(ended),
                        'mean ± deviation': mean_and_spread([record.last(metric) for record in ended]),
                        'minus FC, by seed': mean_and_spread(ahead, '+') if ahead else '',
                        'of 0.1.0': sum(record.source != MEASURED for record in ended) or '',
                    }
                )
    return rows


def details(study: Study, records: Records) -> list[dict[str, object]]:
    """Everything that is known of the last epochs of a study's runs: means over the seeds."""
    rows = []
    for setting in study.settings:
        ended = done(study, setting, records)
        if ended:
            row = {'': setting, 'seeds': len(ended)}
            row |= {name: cell([record.last(key) for record in ended]) for key, name in study.metrics.items()}
            row |= {name: cell([record.last_loss(key) for record in ended], 2) for key, name in study.losses.items()}
            row['norm at first'] = cell([record.classifier.norm_begin for record in ended])
            row['turned to'] = cell([record.classifier.cosine for record in ended], 2)
            rows.append(row)
    return rows


def course(study: Study, records: Records) -> list[dict[str, object]]:
    """How the losses of a study's runs fall, from quarter to quarter: means over the seeds."""
    rows = []
    for setting in study.settings:
        ended = done(study, setting, records)
        told = {key: name for key, name in study.losses.items() if ended and key in ended[0].losses}
        for key, name in told.items():
            total, steps = ended[0].total, sorted(ended[0].losses[key])
            marks = dict.fromkeys([steps[0], *(at for at in steps if at % max(1, total // 4) == 0)])
            losses = {at: [record.losses.get(key, {}).get(at) for record in ended] for at in marks}
            values = {f'{ended[0].unit} {at}': cell(each, 2) for at, each in losses.items()}
            rows.append({'': setting, 'seeds': len(ended), 'loss': name, **values})
    return rows


def cell(values: Sequence[float | None], digits: int = 1) -> str:
    """The mean over the seeds, if all of them are known."""
    return '' if None in values else f'{statistics.mean(values):.{digits}f}'


def missing(records: Records) -> list[dict[str, object]]:
    """The studies of which not all runs are on record."""
    rows = []
    for name, study in STUDIES.items():
        names = {run.name for runs in study.settings.values() for run in runs}
        if not names <= set(records):
            counts = f'{len(names & set(records))} of {len(names)}'
            rows.append({'study': f'`{name}`', 'task': study.title, 'runs on record': counts})
    return rows


def rule(records: Records, path: Path) -> None:
    """Paint how far EBV is ahead of FC, over the norm that its projection begins with, a line for each task."""
    figure = new_figure(7, 4)
    panel = figure.subplots()
    for k, study in enumerate(STUDIES[name] for name in COMPARISONS):
        metric = next(iter(study.metrics))
        points = []
        for setting in study.settings:
            ahead = differences(study, setting, metric, records) if setting.startswith('EBV') else []
            if ahead:
                norm = statistics.mean(r.classifier.norm_begin for r in done(study, setting, records))
                points.append((norm * TAU, statistics.mean(ahead), statistics.stdev(ahead) if len(ahead) > 1 else 0))
        if points:
            x, y, error = zip(*sorted(points), strict=True)
            heading = study.metrics[metric]
            panel.errorbar(x, y, error, marker='o', capsize=3, color=f'C{k}', label=f'{study.title} ({heading})')
    panel.axhline(0, color='black', linewidth=0.8)
    panel.axvline(1, color='black', linewidth=0.8, linestyle=':')
    panel.set_xscale('log')
    panel.set(xlabel='tau x norm of the projection at the beginning (1: balanced)', ylabel='points ahead of FC')
    figure.legend(frameon=False, loc='outside lower center', ncols=2, fontsize=7)
    save_figure(figure, path)


def fill(page: str, records: Records) -> str:
    """The page with its tables."""
    tables = {name: details(study, records) for name, study in STUDIES.items()}
    tables |= {f'{name}-course': course(study, records) for name, study in STUDIES.items()}
    tables |= {'comparison': comparison(records), 'missing': missing(records)}
    return filled(page, {MARKER.format(name): markdown_table(tables[name]) for name in ASKED.findall(page)})


def report(records: Records, page: Path, console: Console) -> None:
    """Replace the tables of the page, paint its picture."""
    text = fill(page.read_text(), records)
    with whole_file(page) as part:
        part.write_text(text)
    picture = page.parent / 'results' / 'rule.png'
    rule(records, picture)
    console.print(f'{page}: {len(ASKED.findall(text))} tables from {len(records)} runs; picture: {picture}')
