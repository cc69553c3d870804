"""The tables and the picture of benchmarks/comparison.py, from the results that are there."""

import json
import statistics
from pathlib import Path

from comparison_arms import ARMS
from comparison_trials import (
    BUDGET,
    EQUAL_MEANS,
    EQUAL_STEPS,
    HOUR,
    LARGE,
    PACE,
    RATES,
    STUDIES,
    TRAINED,
    WARM_UP,
    optimizer_of,
    trials_of,
)
from many_classes_report import seconds_to
from pages import fill
from rich.console import Console

from ebv_mm.output import markdown_table, new_figure, save_figure

PAGE = Path(__file__).parents[1] / 'docs' / 'large_n.md'
PICTURE = 'large_n_comparison.png'
MARKER = '<!-- {}: python benchmarks/comparison.py report -->'
NOT_MEASURED = 'Not measured yet.'
LEGEND = (
    'solid, cold: EBV; dashed, warm: others; dotted: from a pretrained backbone, or in waves; '
    'circle: the nearest class mean; diamond: the same, of the classifier of that colour'
)
COLD = (
    'blue deepskyblue teal mediumpurple limegreen navy turquoise olivedrab darkgreen slateblue cadetblue indigo '
    'lightskyblue seagreen'
).split()
WARM = (
    'red orange hotpink saddlebrown gold crimson sandybrown violet tomato darkgoldenrod lightcoral maroon peru plum'
).split()
LEVEL = 50  # percent, whose time is told
CLOCKS = {'cpu': 'seconds of the process, beside other jobs', 'wall': 'seconds of the clock, nothing else running'}

Records = list[dict]


def read_all(results: Path) -> Records:
    """The finished trials, in the order of the studies."""
    files = [results / f'{trial.name}.json' for trial in trials_of(list(STUDIES))]
    return [json.loads(file.read_text()) for file in files if file.exists()]


def is_short(record: dict) -> bool:
    """Of the studies of learning rates and of beginnings."""
    return record['kind'] == TRAINED and record['epochs'] is not None


def in_full(record: dict) -> bool:
    """A training of as many epochs or seconds as all others of its size."""
    return record['kind'] == TRAINED and all(record.get(key) is None for key in ('epochs', 'steps', 'minutes'))


def rows(records: Records) -> list[dict[str, object]]:
    """A row for each classifier and number of classes: what a step costs, what its trainings reached, side by side."""
    groups: dict[tuple[int, str], Records] = {}
    for record in records:
        if record['kind'] == PACE or in_full(record):
            groups.setdefault((record['num_classes'], record['arm']), []).append(record)
    order = list(ARMS)
    return [
        row(num_classes, arm, groups[num_classes, arm])
        for num_classes, arm in sorted(groups, key=lambda key: (key[0], order.index(key[1])))
    ]


def row(num_classes: int, arm: str, records: Records) -> dict[str, object]:
    # the pace was measured for this; without it, the training itself
    one = next((record for record in records if record['kind'] == PACE), records[0])
    parts, parameters = one['parts'], one['parameters']
    trained = sum(parameters.values())
    backbone, head = (parts[part] + parts['optimizer'] * parameters[part] / trained for part in ('backbone', 'head'))
    out = {
        'N': f'{num_classes:,}',
        'classifier': ARMS[arm].title,
        'images / s': f'{one["batch"] / sum(parts.values()):,.0f}',
        'backbone, ms': f'{1000 * backbone:,.0f}',
        'head, ms': f'{1000 * head:,.0f}',
        'memory, MB': f'{one["memory"]:,}',
        'trained, M': f'{trained / 1e6:.1f}',
    }
    full = [record for record in records if record['kind'] == TRAINED]
    if not full:
        return out
    last = [record['curve'][-1] for record in full]
    # a curve of one point, as of the means, does not tell when it was reached
    reached = [seconds_to(record, LEVEL) for record in full if len(record['curve']) > 1]
    return {
        **out,
        'checkpoint, MB': f'{full[0]["checkpoint"]:,.0f}',
        'rate': ', '.join(f'{record["rate"]:g}' for record in full),
        'epochs': f'{last[0]["epoch"]:.3g}',
        'minutes': cell([point['seconds'] / 60 for point in last]),
        f'to {LEVEL} %': ', '.join('never' if seconds is None else f'{seconds / 60:.1f}' for seconds in reached),
        'top-1': cell([point['top1'] for point in last]),
        'top-5': cell([point['top5'] for point in last]),
        'unknown: logit': cell([100 * record['unknown'].get('logit', 0) for record in full]),
        'softmax': cell([100 * record['unknown']['softmax'] for record in full if 'softmax' in record['unknown']]),
    }


def cell(values: list[float]) -> str:
    return ', '.join(f'{value:.1f}' for value in values)


def rate_rows(records: Records) -> list[dict[str, object]]:
    """Top-1 at each learning rate that was tried."""
    arms = {trial.arm for trial in STUDIES['rates']}
    reached = {
        (record['arm'], record['rate']): record['curve'][-1]['top1']
        for record in records
        if is_short(record) and record['arm'] in arms and record.get('warm_up') is None
    }
    out = []
    for arm in dict.fromkeys(arm for arm, _ in reached):
        tried = [(rate, reached.get((arm, rate))) for rate in RATES[optimizer_of(arm)]]
        rates = ' / '.join(f'{rate:g}' for rate, _ in tried)
        values = ' / '.join('' if top1 is None else f'{top1:.1f}' for _, top1 in tried)
        out.append({'classifier': ARMS[arm].title, 'learning rates': rates, 'top-1': values})
    return out


def beginning_rows(records: Records) -> list[dict[str, object]]:
    """Top-1 after a short and a long warm-up."""
    short = {(r['arm'], r['rate'], r.get('warm_up')): r['curve'][-1]['top1'] for r in records if is_short(r)}
    trials = STUDIES['beginning']
    heading = {None: 'warm-up of a tenth', WARM_UP: f'of {WARM_UP} steps'}
    rows = []
    for arm in dict.fromkeys(trial.arm for trial in trials):
        reached = {t.warm_up: short.get((arm, t.rate, t.warm_up)) for t in trials if t.arm == arm}
        if any(top1 is not None for top1 in reached.values()):
            cells = {heading[key]: '' if top1 is None else f'{top1:.1f}' for key, top1 in reached.items()}
            rows.append({'classifier': ARMS[arm].title, **cells})
    return rows


def by_seed(records: Records) -> list[Records]:
    """The trainings of each classifier and learning rate together; the best first."""
    groups: dict[tuple[str, float], Records] = {}
    for record in records:
        groups.setdefault((record['arm'], record['rate']), []).append(record)
    return sorted(groups.values(), key=lambda group: -statistics.mean(map(best_top1, group)))


def best_top1(record: dict) -> float:
    return max(record['curve'][-1]['top1'], (record.get('by_means') or {}).get('top1', 0))


def step_rows(records: Records) -> list[dict[str, object]]:
    """What classifiers reach after as many steps, whatever these take; fewest steps and best first."""
    trained = [record for record in records if record['num_classes'] == LARGE and record['kind'] == TRAINED]
    out = []
    for steps in (EQUAL_STEPS, EQUAL_MEANS):
        for group in by_seed([record for record in trained if record['iterations'] == steps]):
            last = [record['curve'][-1] for record in group]
            out.append(
                {
                    'classifier': ARMS[group[0]['arm']].title,
                    'rate': f'{group[0]["rate"]:g}',
                    'steps': f'{steps:,}',
                    'seconds': ', '.join(f'{record["seconds"]:,.0f}' for record in group),
                    'top-1': cell([point['top1'] for point in last]),
                    'top-5': cell([point['top5'] for point in last]),
                }
            )
    return out


def hour_rows(records: Records) -> list[dict[str, object]]:
    """What classifiers reach in an hour, by themselves and by the means of what is before them; best first."""
    out = []
    for group in by_seed([record for record in records if record.get('minutes') == HOUR]):
        last = [record['curve'][-1] for record in group]
        means = [record['by_means'] for record in group if record.get('by_means')]
        out.append(
            {
                'classifier': ARMS[group[0]['arm']].title,
                'rate': f'{group[0]["rate"]:g}',
                'steps': ', '.join(f'{record["iterations"]:,}' for record in group),
                'epochs': f'{last[0]["epoch"]:.3g}',
                'minutes': cell([point['seconds'] / 60 for point in last]),
                'top-1': cell([point['top1'] for point in last]),
                'top-5': cell([point['top5'] for point in last]),
                'unknown': cell([100 * record['unknown']['logit'] for record in group]),
                'by means: minutes more': cell([each['seconds'] / 60 for each in means]),
                'their top-1': cell([each['top1'] for each in means]),
            }
        )
    return out


def measured_by(records: Records) -> str:
    """Which clocks and machines the figures are of, each once."""
    kinds = dict.fromkeys(f'{CLOCKS[record["clock"]]}; {record["machine"]}' for record in records)
    return ' '.join(f'Time: {kind}.' for kind in kinds)


def without_beginning(arm: str) -> str:
    return arm.removesuffix('-waves').removesuffix('-pretrained')


def columns(records: Records) -> dict[str, Records]:
    """The trainings of each column of the picture: of each classifier the first seed, at the best of its rates."""
    time = {LARGE: f', {BUDGET} minutes'}
    sizes = sorted({record['num_classes'] for record in records})
    kinds = {f'{size:,} characters{time.get(size, "")}': size for size in sizes}
    out = {
        title: [record for record in records if in_full(record) and record['num_classes'] == size]
        for title, size in kinds.items()
    }
    out[f'{LARGE:,} characters, an hour'] = [record for record in records if record.get('minutes') == HOUR]
    first = {title: [one for one in found if one['seed'] == 0] for title, found in out.items()}
    best = {title: {one['arm']: one for one in sorted(found, key=best_top1)} for title, found in first.items()}
    return {title: list(found.values()) for title, found in best.items() if found}


def line(arm: str, shown: list[str]) -> dict[str, object]:
    """EBV solid in cold colours, others dashed in warm ones; dotted with waves or a pretrained backbone."""
    base = without_beginning(arm)
    ebv = 'ebv' in base
    relatives, colors = [name for name in shown if ('ebv' in name) == ebv], COLD if ebv else WARM
    style = ':' if base != arm else '-' if ebv else '--'
    return dict(color=colors[relatives.index(base) % len(colors)], linestyle=style, linewidth=2.2 if ebv else 1.4)


def draw(records: Records, path: Path) -> None:
    """Top-1 over time, and over epochs, a column for each number of classes, and for an hour."""
    panels = columns(records)
    shown = list(dict.fromkeys(without_beginning(one['arm']) for found in panels.values() for one in found))
    figure = new_figure(5 * len(panels), 10)
    grid = figure.subplots(2, len(panels), squeeze=False)
    for axis, (key, scale, label) in enumerate((('seconds', 60, 'minutes'), ('epoch', 1, 'epochs'))):
        for panel, (title, found) in zip(grid[axis], panels.items()):
            for record in found:
                arm, curve = record['arm'], record['curve']
                style = line(arm, shown)
                if len(curve) > 1:
                    panel.plot([p[key] / scale for p in curve], [p['top1'] for p in curve], **style)
                if key == 'seconds':  # the epochs of means are those of a tenth of the classes
                    ends = [(p['seconds'], p['top1']) for p in curve] if len(curve) == 1 else []
                    means = record.get('by_means')
                    ends += [(curve[-1]['seconds'] + means['seconds'], means['top1'])] if means else []
                    for seconds, top1 in ends:
                        panel.plot(seconds / 60, top1, marker='o' if ARMS[arm].means else 'D', color=style['color'])
            panel.set(title=title, xlabel=label, ylabel='top-1, unseen fonts, %', ylim=(0, 100))
    handles = [
        figure.axes[0].plot([], [], **line(arm, shown), marker='o' if ARMS[arm].means else '', label=ARMS[arm].title)[0]
        for arm in shown
    ]
    figure.legend(handles=handles, loc='outside lower center', ncols=5, fontsize=8, title=LEGEND)
    save_figure(figure, path)


def report(results: Path, page: Path, console: Console) -> int:
    """Replace the tables of the page, paint its picture."""
    records = read_all(results)
    known = f'{len(records)} of {len(trials_of(list(STUDIES)))} trainings are on record'
    console.print(known)
    table = rows(records)
    measured = f'{markdown_table(table)}\n\n{known}. {measured_by(records)}' if table else NOT_MEASURED
    others = {
        'hour': hour_rows(records),
        'equal steps': step_rows(records),
        'learning rates': rate_rows(records),
        'beginnings': beginning_rows(records),
    }
    blocks = {'comparison': measured, **{name: markdown_table(t) if t else NOT_MEASURED for name, t in others.items()}}
    fill(page, {MARKER.format(name): text for name, text in blocks.items()})
    if any(map(in_full, records)):
        draw(records, page.parent / PICTURE)
    console.print(f'{page}: {len(table)} rows')
    return 0
