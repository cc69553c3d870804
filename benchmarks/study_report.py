"""Tables and pictures of the studies."""

import statistics
from pathlib import Path
from typing import Dict, Iterable, List, Sequence

from histories import History
from matplotlib.figure import Figure
from studies import LABELS, LONG_TAILS, STUDIES, SWEEP_FC, SWEEPS, TOP1, Run, Study, runs_of

from ebv_mm.output import save_figure

# The usual thirds of the long tail; CIFAR-10's classes are sorted by their number of images.
THIRDS = {'many images (classes 0-2)': slice(0, 3), 'some (3-6)': slice(3, 7), 'few (7-9)': slice(7, 10)}


def mean_and_spread(values: Sequence[float]) -> str:
    """The mean and, of several values, the standard deviation (of the sample, n - 1)."""
    mean = f'{statistics.mean(values):.2f}'
    return f'{mean} ± {statistics.stdev(values):.2f}' if len(values) > 1 else mean


def percent(key: str, value: float) -> float:
    """Metrics in percent; mmdet's are shares of one."""
    return 100 * value if key.startswith('coco/') else value


def finished(runs: Iterable[Run], histories: Dict[str, History]) -> List[History]:
    return [histories[run.name] for run in runs if histories[run.name].finished]


def table(study: Study, histories: Dict[str, History]) -> List[str]:
    """Last figures of the finished runs of a study, as markdown: mean and standard deviation over the seeds."""
    columns = [*study.metrics.values(), *study.losses.values()]
    columns += (
        ["norm of the classifier's weight", 'its stable rank', 'its cosine with its beginning']
        if study.classifier
        else []
    )
    columns += ['images/s', 'waiting for data']
    lines = [f'### {study.title}', f'| | runs | {" | ".join(columns)} |', '|---' * (len(columns) + 2) + '|']
    for setting, runs in study.settings.items():
        ended = finished(runs, histories)
        if not ended:
            continue
        cells = [mean_and_spread([percent(key, history.last(key)) for history in ended]) for key in study.metrics]
        cells += [mean_and_spread([history.losses(key)[1][-1] for history in ended]) for key in study.losses]
        if study.classifier:
            cells += map(mean_and_spread, zip(*(history.classifier for history in ended)))
        speeds, shares = zip(*(history.speed() for history in ended))
        cells += [f'{statistics.mean(speeds):.3g}', f'{statistics.mean(shares):.0%}']
        lines.append(f'| {setting} | {len(ended)} | {" | ".join(cells)} |')
    missing = [
        f'{run.name} ({histories[run.name].done}/{histories[run.name].total})'
        for runs in study.settings.values()
        for run in runs
        if not histories[run.name].finished
    ]
    return lines + ([f'\nnot finished: {", ".join(missing)}'] if missing else [])


def class_table(study: Study, histories: Dict[str, History]) -> List[str]:
    """Accuracy of the classes with many, some and few images."""
    lines = [f'### {study.title}: by number of training images', f'| | runs | {" | ".join(THIRDS)} |', '|---' * 5 + '|']
    for setting, runs in study.settings.items():
        recalls = [recalls for run in runs for recalls in histories[run.name].recalls]
        if recalls:
            cells = [mean_and_spread([statistics.mean(r[third]) for r in recalls]) for third in THIRDS.values()]
            lines.append(f'| {setting} | {len(recalls)} | {" | ".join(cells)} |')
    return lines


def curves(study: Study, histories: Dict[str, History], path: Path) -> None:
    """Paint losses and first metric of the finished runs: a colour for each setting, a line for each run, FC dashed."""
    (metric, heading), *_ = study.metrics.items()
    figure = Figure(figsize=(4.2 * len(study.losses) + 4.2, 3.6), layout='constrained')
    *panels, last = figure.subplots(1, len(study.losses) + 1)
    for k, (setting, runs) in enumerate(study.settings.items()):
        style = dict(color=f'C{k}', linewidth=1.2, linestyle='--' if 'FC' in setting else '-')
        ended = finished(runs, histories)
        for history, label in zip(ended, [setting, *[None] * len(ended)]):
            for panel, (key, name) in zip(panels, study.losses.items()):
                panel.plot(*history.losses(key), **style)
                panel.set(xlabel=history.unit, ylabel=name, yscale='log')
                panel.yaxis.set_major_formatter('{x:g}')
                panel.yaxis.set_minor_formatter('{x:g}')
            steps = sorted(history.val)
            last.plot(steps, [percent(metric, history.val[s][metric]) for s in steps], marker='.', label=label, **style)
            last.set(xlabel=history.unit, ylabel=heading)
    figure.suptitle(study.title, fontsize=10)
    figure.legend(frameon=False, loc='outside lower center', ncols=3, fontsize=8)
    save_figure(figure, path)


def sweep(key: str, histories: Dict[str, History], path: Path) -> None:
    """Paint what a setting does to the accuracy of the last epoch, a line for each initialisation, FC a level."""
    (metric, heading), *_ = TOP1.items()
    figure = Figure(figsize=(5, 3.4), layout='constrained')
    panel = figure.subplots()
    for name, runs in SWEEPS[key].items():
        panel.plot(list(runs), [histories[run.name].last(metric) for run in runs.values()], marker='o', label=name)
    panel.axhline(histories[SWEEP_FC.name].last(metric), color='C2', linestyle='--', label='FC')
    panel.set_xscale('log')
    values = list(next(iter(SWEEPS[key].values())))
    panel.set_xticks(values, [f'{value:g}' for value in values], minor=False)
    panel.minorticks_off()
    panel.set(xlabel=LABELS[key], ylabel=heading)
    panel.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def report(work_dir: Path, pictures: Path) -> None:
    histories = {run.name: History(run, work_dir) for run in runs_of(list(STUDIES))}
    for name, study in STUDIES.items():
        print('\n'.join(table(study, histories)), end='\n\n')
        if name in LONG_TAILS:
            print('\n'.join(class_table(study, histories)), end='\n\n')
        if any(finished(runs, histories) for runs in study.settings.values()):
            curves(study, histories, pictures / f'{name}.png')
    for key, by_name in SWEEPS.items():
        if any(finished(runs.values(), histories) for runs in by_name.values()):
            sweep(key, histories, pictures / f'{key}_sweep.png')
    print(f'pictures: {pictures}')
