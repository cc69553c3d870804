"""Tables and the picture of benchmarks/many_classes.py, from the results that are there."""

import json
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from many_classes_trials import STUDIES, Trial

from ebv_mm.output import markdown_table, new_figure, save_figure

# accuracies whose steps are counted, in percent
LEVELS = (25, 50)


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
    return ', '.join(parts + ['pretrained'] * trial.pretrained)


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
        row['top-1 at the end'] = ', '.join(f'{point["top1"]:.1f}' for point in last)
        row['s a step'] = f'{min(point["seconds"] / point["step"] for point in last):.2f}'
        row['parameters'] = f'{result["parameters"] / 1e6:.1f} M'
        out.append(row)
    return out


def panels_of(found: Dict[Trial, dict]) -> List[Tuple[int, bool]]:
    return sorted({(trial.num_classes, trial.pixels) for trial in found})


def titled(num_classes: int, pixels: bool) -> str:
    return f'{num_classes:,} written characters' + ', the classifier alone, on pixels' * pixels


def draw(found: Dict[Trial, dict], path: Path) -> None:
    """Accuracy over steps, a panel for each N, the first seed."""
    panels = panels_of(found)
    figure = new_figure(6 * len(panels), 4.5)
    for axes, (num_classes, pixels) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        for trial, result in found.items():
            if (trial.num_classes, trial.pixels, trial.seed) == (num_classes, pixels, 0):
                line = '--' if trial.classifier == 'fc' else '-'
                points = [(point['step'], point['top1']) for point in result['curve']]
                axes.plot(*zip(*points), line, label=described(trial))
        axes.set(title=titled(num_classes, pixels), xlabel='steps', ylabel='top-1, unseen fonts, %')
        axes.legend(fontsize=6)
    save_figure(figure, path)


def report(results: Path, plot: Optional[Path]) -> int:
    """Print the tables as Markdown, and draw the picture where one is asked for."""
    found = read(results)
    total = len(dict.fromkeys(trial for trials in STUDIES.values() for trial in trials))
    print(f'{len(found)} of {total} trainings are finished')
    for num_classes, pixels in panels_of(found):
        print(f'\n{titled(num_classes, pixels)}\n\n{markdown_table(rows(found, num_classes, pixels))}')
    if plot is not None:
        if not found:
            print(f'no training is finished, so {plot} is not drawn')
            return 1
        draw(found, plot)
    return 0
