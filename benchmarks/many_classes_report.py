"""Tables and the picture of benchmarks/many_classes.py, from the results that are there."""

import json
import math
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from many_classes_trials import STEPS, STUDIES, Trial, helped, plain
from pages import fill

from ebv_mm.output import markdown_table, new_figure, save_figure

# accuracies whose steps are counted, in percent
LEVELS = (25, 50)
MARKER = '<!-- trainings: python benchmarks/many_classes.py report -->'


def read(results: Path) -> Dict[Trial, dict]:
    """The finished trials, each with its result."""
    found = {}
    for trial in dict.fromkeys(trial for trials in STUDIES.values() for trial in trials):
        file = results / f'{trial.name}.json'
        if file.exists():
            found[trial] = json.loads(file.read_text())
    return found


def steps_to(curve: Sequence[dict], level: float) -> Optional[float]:
    """The step at which a curve reaches an accuracy, between two points by a straight line; None: not at all."""
    before = dict(step=0, top1=0.0)
    for point in curve:
        if point['top1'] >= level:
            share = (level - before['top1']) / (point['top1'] - before['top1'])
            return before['step'] + share * (point['step'] - before['step'])
        before = point
    return None


def described(trial: Trial) -> str:
    names = {'fc': 'FC', 'ebv': 'EBV', 'cosine': 'trained vectors'}
    parts = [names[trial.classifier] + (f' d = {trial.dim}' if trial.dim else '')]
    if trial.tau:
        parts.append(f'tau {trial.tau:g}' + (f' to {trial.tau_end:g}' if trial.tau_end else ''))
    parts += [f'hidden {trial.hidden}'] * bool(trial.hidden) + ['norm'] * trial.norm + ['waves'] * bool(trial.waves)
    parts += [f'rate {trial.rate:g}'] * (trial.rate != 0.003) + [f'batch {trial.batch}'] * (trial.batch != 256)
    return ', '.join(parts + ['pretrained'] * trial.pretrained + ['no negatives'] * (not trial.negatives))


def rows(found: Dict[Trial, dict], num_classes: int, pixels: bool = False) -> List[Dict[str, object]]:
    """One row for each setting, its seeds side by side."""
    settings: Dict[Tuple, List[Tuple[Trial, dict]]] = {}
    for trial, result in found.items():
        if (trial.num_classes, trial.pixels) == (num_classes, pixels):
            settings.setdefault((described(trial), trial.steps), []).append((trial, result))
    out = []
    for (name, steps), runs in settings.items():
        trial, result = runs[0]
        last = [run['curve'][-1] for _, run in runs]
        row = {'classifier': name, 'N / d': f'{num_classes / trial.dim:.3g}' if trial.dim else '', 'steps': steps}
        for level in LEVELS:
            reached = [steps_to(run['curve'], level) for _, run in runs]
            row[f'steps to {level} %'] = ', '.join('never' if step is None else f'{step:.0f}' for step in reached)
        costs = [steps_against_fc(found, trial) for trial, _ in runs]
        row['to 50 %, FC = 1'] = ', '.join(
            'never' if cost == math.inf else f'{cost:.2f}' for cost in costs if cost is not None
        )
        row['top-1 at the end'] = ', '.join(f'{point["top1"]:.1f}' for point in last)
        row['s a step'] = f'{min(point["seconds"] / point["step"] for point in last):.2f}'
        row['parameters'] = f'{result["parameters"] / 1e6:.1f} M'
        out.append(row)
    return out


def panels_of(found: Dict[Trial, dict]) -> List[Tuple[int, bool]]:
    return sorted({(trial.num_classes, trial.pixels) for trial in found})


def titled(num_classes: int, pixels: bool) -> str:
    return f'{num_classes:,} written characters' + ', the classifier alone, on pixels' * pixels


def steps_against_fc(found: Dict[Trial, dict], trial: Trial, level: float = 50) -> Optional[float]:
    """Steps to an accuracy over those of FC under the same conditions; infinite: not reached, None: nothing to compare.

    The same are hidden layer, waves, batch, beginning and seed; FC's rate is the default.
    """
    same = ('hidden', 'waves', 'batch', 'pretrained', 'pixels', 'seed')
    twin = found.get(Trial('fc', trial.num_classes, trial.steps, **{name: getattr(trial, name) for name in same}))
    theirs = twin and steps_to(twin['curve'], level)
    if trial.classifier == 'fc' or not theirs:
        return None
    ours = steps_to(found[trial]['curve'], level)
    return math.inf if ours is None else ours / theirs


def cost_in_steps(found: Dict[Trial, dict]) -> Dict[str, List[Tuple[float, float]]]:
    """(N / d, steps against FC), plain EBV and with helpers; trials that vary something else are left out."""
    kinds = {'EBV': plain, 'EBV, hidden layer, norm and falling tau': helped}
    out: Dict[str, List[Tuple[float, float]]] = {kind: [] for kind in kinds}
    for trial in found:
        cost = steps_against_fc(found, trial)
        for kind, make in kinds.items():
            if cost and trial == make(trial.num_classes, trial.steps, trial.dim, seed=trial.seed):
                out[kind].append((trial.num_classes / trial.dim, cost))
    return out


def draw(found: Dict[Trial, dict], path: Path) -> None:
    """Steps to half of the test right, over N / d; beside it the curves of 1,000 classes, first seed."""
    figure = new_figure(11, 4)
    left, right = figure.subplots(1, 2)
    never = 1.3 * max([2.0, *(y for points in cost_in_steps(found).values() for _, y in points if y < math.inf)])
    for k, (kind, points) in enumerate(cost_in_steps(found).items()):
        reached = [point for point in points if point[1] < math.inf]
        if reached:
            left.plot(*zip(*reached), 'os'[k], color=f'C{k}', label=kind)
        missed = [x for x, y in points if y == math.inf]
        if missed:
            left.plot(missed, [never] * len(missed), '^', color=f'C{k}', fillstyle='none', label=f'{kind}: not reached')
    left.axhline(1, color='0.6', linewidth=1)
    left.set(xscale='log', xlabel='classes per dimension, N / d', ylabel='steps to 50 %, FC = 1', ylim=(0, None))
    left.set_title('How many more steps than FC')
    left.legend(fontsize=7)
    for trial in (Trial('fc', 1000, STEPS[1000]), *(plain(1000, STEPS[1000], dim) for dim in (1024, 256, 64))):
        if trial in found:
            points = [(point['step'], point['top1']) for point in found[trial]['curve']]
            right.plot(*zip(*points), '--' if trial.classifier == 'fc' else '-', label=described(trial))
    right.set(xlabel='steps', ylabel='top-1 in unseen fonts, %', title='1,000 written characters')
    if right.lines:
        right.legend(fontsize=7)
    save_figure(figure, path)


def report(results: Path, plot: Optional[Path], page: Optional[Path]) -> int:
    """Print the tables as Markdown, or put them into a page; draw the picture where one is asked for."""
    found = read(results)
    total = len(dict.fromkeys(trial for trials in STUDIES.values() for trial in trials))
    tables = [
        f'**{titled(num_classes, pixels)}**\n\n{markdown_table(rows(found, num_classes, pixels))}'
        for num_classes, pixels in panels_of(found)
    ]
    text = '\n\n'.join([*tables, f'{len(found)} of {total} trainings are finished.'])
    if page is None:
        print(text)
    else:
        fill(page, {MARKER: text})
    if plot is not None:
        if not found:
            print(f'no training is finished, so {plot} is not drawn')
            return 1
        draw(found, plot)
    return 0
