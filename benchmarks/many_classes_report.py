"""Tables and the picture of benchmarks/many_classes.py, from the results that are there."""

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from many_classes_trials import SMALL, STUDIES, Trial, helped, plain
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
    parts += [f'{trial.groups} blocks'] * (trial.groups > 1)
    parts += [f'begins {trial.begin:g} x as large'] * (trial.begin != 1)
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
        seconds = [seconds_to(run) for _, run in runs]
        row['seconds to 50 %'] = ', '.join('never' if each is None else f'{each:.0f}' for each in seconds)
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

    The same are hidden layer, waves, batch, backbone and seed, and the usual learning rate and beginning. Where EBV has
    another of these two, FC has the best of those that it was trained with.
    """
    if trial.classifier == 'fc':
        return None
    same = ('num_classes', 'steps', 'hidden', 'waves', 'batch', 'pretrained', 'pixels', 'seed')
    conditions = Trial('fc', **{name: getattr(trial, name) for name in same})
    twins = [
        result
        for one, result in found.items()
        if replace(one, rate=conditions.rate, begin=conditions.begin) == conditions
        and (one.rate == conditions.rate or trial.rate != conditions.rate)
        and (one.begin == conditions.begin or trial.begin != conditions.begin)
    ]
    theirs = min(filter(None, (steps_to(twin['curve'], level) for twin in twins)), default=None)
    if theirs is None:
        return None
    ours = steps_to(found[trial]['curve'], level)
    return math.inf if ours is None else ours / theirs


KINDS = {
    'EBV': plain,
    'EBV, small beginning': partial(plain, begin=SMALL),
    'EBV, norm, rate .01': partial(plain, norm=True, rate=0.01),
    'EBV, helpers': helped,
    'EBV, helpers, small beginning': partial(helped, begin=SMALL),
}


def kind_of(trial: Trial) -> Optional[str]:
    """Which of KINDS; None: another. The backbone may be pretrained."""
    for kind, make in KINDS.items() if trial.dim else ():
        if trial == make(trial.num_classes, trial.steps, trial.dim, seed=trial.seed, pretrained=trial.pretrained):
            return kind
    return None


def cost_in_steps(found: Dict[Trial, dict]) -> Dict[Tuple[str, int], List[Tuple[float, float]]]:
    """(N / d, steps against FC) for each kind and number of classes, from a backbone that is not pretrained."""
    out: Dict[Tuple[str, int], List[Tuple[float, float]]] = {}
    for trial in found:
        cost, kind = steps_against_fc(found, trial), kind_of(trial)
        if cost and kind and not trial.pretrained:
            out.setdefault((kind, trial.num_classes), []).append((trial.num_classes / trial.dim, cost))
    return out


def seconds_to(result: dict, level: float = 50) -> Optional[float]:
    """Seconds of the processor to an accuracy."""
    return steps_to([dict(point, step=point['seconds']) for point in result['curve']], level)


def by_the_clock(found: Dict[Trial, dict]) -> Dict[Tuple[str, int, bool], List[Tuple[int, float]]]:
    """(N, seconds to half of the test right over those of the fastest FC), for each kind, d, and pretrained or not.

    FC may have a hidden layer, waves, a small beginning or none of them; backbone and seed are the same.
    """

    def conditions(trial: Trial) -> Tuple:
        return trial.num_classes, trial.pretrained, trial.pixels, trial.seed, trial.batch

    fastest: Dict[Tuple, float] = {}
    for trial, result in found.items():
        seconds = seconds_to(result)
        if trial.classifier == 'fc' and seconds:
            fastest[conditions(trial)] = min(seconds, fastest.get(conditions(trial), math.inf))
    out: Dict[Tuple[str, int, bool], List[Tuple[int, float]]] = {}
    for trial in filter(kind_of, found):
        theirs, ours = fastest.get(conditions(trial)), seconds_to(found[trial])
        if theirs and ours:
            point = trial.num_classes, ours / theirs
            out.setdefault((kind_of(trial), trial.dim, trial.pretrained), []).append(point)
    return out


MARKS = dict(zip(KINDS, 'oP^sD'))


def draw(found: Dict[Trial, dict], path: Path) -> None:
    """Steps to half of the test right over N / d; the seconds that this takes, over N."""
    figure = new_figure(15, 4.5)
    left, right = figure.subplots(1, 2)
    costs = cost_in_steps(found)
    never = 1.3 * max([2.0, *(y for points in costs.values() for _, y in points if y < math.inf)])
    sizes = sorted({size for _, size in costs})
    for (kind, size), points in sorted(costs.items()):
        style = dict(marker=MARKS[kind], color=f'C{sizes.index(size)}', linestyle='')
        reached = [point for point in points if point[1] < math.inf]
        if reached:
            left.plot(*zip(*reached), **style, label=f'{size:,} classes, {kind}')
        missed = [x for x, y in points if y == math.inf]
        if missed:
            left.plot(missed, [never] * len(missed), **style, fillstyle='none',
                      label=f'{size:,} classes, {kind}: not reached')  # fmt: skip
    left.set(xscale='log', xlabel='classes per dimension, N / d', ylabel='steps to 50 %, FC = 1', ylim=(0, None))
    left.set_title('How many more steps than FC')
    clock = by_the_clock(found)
    dims = sorted({dim for _, dim, _ in clock})
    for (kind, dim, pretrained), points in sorted(clock.items()):
        style = dict(marker=MARKS[kind], color=f'C{dims.index(dim)}', fillstyle='none' if pretrained else 'full')
        label = f'd = {dim:,}, {kind}' + ', pretrained' * pretrained
        right.plot(*zip(*sorted(points)), linestyle='', **style, label=label)
    right.set(xscale='log', xlabel='classes, N', ylabel='seconds to 50 %, fastest FC = 1', ylim=(0, None))
    right.set_title('By the clock')
    trained = sorted({size for points in clock.values() for size, _ in points})
    right.set_xticks(trained, labels=[f'{size:,}' for size in trained])
    right.minorticks_off()
    for panel in (left, right):
        panel.axhline(1, color='0.6', linewidth=1)
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=7, loc='upper left', bbox_to_anchor=(1, 1))
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
