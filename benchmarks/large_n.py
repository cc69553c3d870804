"""What many classes cost: ours against dense logits and against the FC layer, side by side in one run.

Times are the best of some steps that take turns, so that other jobs on the machine hurt all alike; extra memory is the
peak above what the process holds before the step, in a process of its own.

    python benchmarks/large_n.py            # a few minutes, 12 GB
    python benchmarks/large_n.py --quick    # small sizes, to see that it works
    python benchmarks/large_n.py --only kerdock growth --plot growth.png
"""

import argparse
import json
import re
import subprocess
import sys
import time
from typing import Callable, Dict, List, Optional, Tuple

import torch
from torch import nn
from torch.nn import functional

from ebv_mm import EBVLinear, basis_cross_entropy, make_basis
from ebv_mm.output import save_figure

Step = Callable[[], torch.Tensor]  # does the work and returns the loss
WIDTHS = {'case': 28, 'N': 9, 'd': 5, 'batch': 5, 'baseline': 12, 'ours': 11, 'faster': 7, 'baseline MB': 11,
          'ours MB': 8, 'smaller': 7}  # fmt: skip


def backward(loss: torch.Tensor) -> torch.Tensor:
    loss.backward()
    return loss.detach()


def dense_loss(num_classes: int, dim: int, batch: int) -> Step:
    """Logits of a matrix, then F.cross_entropy; backward to the features."""
    vectors = functional.normalize(torch.randn(num_classes, dim), dim=1)
    v, target = torch.randn(batch, dim, requires_grad=True), torch.randint(num_classes, (batch,))

    return lambda: backward(functional.cross_entropy(functional.normalize(v, dim=1) @ vectors.T / 0.07, target))


def fused_loss(num_classes: int, dim: int, batch: int) -> Step:
    """The same by torch's own loss without all logits, which torch has from 2.13 on."""
    vectors = functional.normalize(torch.randn(num_classes, dim), dim=1)
    v, target = torch.randn(batch, dim, requires_grad=True), torch.randint(num_classes, (batch,))
    options = nn.LinearCrossEntropyOptions()

    def step() -> torch.Tensor:
        z = functional.normalize(v, dim=1) / 0.07
        return backward(functional.linear_cross_entropy(z, vectors, target, options=options))

    return step


def streamed_loss(num_classes: int, dim: int, batch: int, method: Optional[str]) -> Step:
    """The same loss by basis_cross_entropy, of a structured basis, or of a matrix where there is no method."""
    if method:
        basis = make_basis(num_classes, dim, method=method)
    else:
        basis = functional.normalize(torch.randn(num_classes, dim), dim=1)
    v, target = torch.randn(batch, dim, requires_grad=True), torch.randint(num_classes, (batch,))
    return lambda: backward(basis_cross_entropy(v, target, basis))


def all_logits(model: nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(x), target)


def train_step(model: nn.Module, x: torch.Tensor, num_classes: int, loss: Callable = all_logits) -> Step:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    target = torch.randint(num_classes, (len(x),))

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        value = backward(loss(model, x, target))
        optimizer.step()
        return value

    return step


def features(batch: int) -> torch.Tensor:
    return torch.randn(batch, 2048, requires_grad=True)


def fc_step(num_classes: int, dim: int, batch: int) -> Step:
    del dim
    return train_step(nn.Linear(2048, num_classes), features(batch), num_classes)


def ebv_step(num_classes: int, dim: int, batch: int, method: str) -> Step:
    if method == 'unit vectors':
        basis = make_basis(num_classes, dim, structured=True, rotate=False)
    else:
        basis = make_basis(num_classes, dim, method=method)

    def streamed(layer: EBVLinear, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return basis_cross_entropy(layer.project(x), target, layer.products, layer.tau)

    layer = EBVLinear(2048, num_classes, basis=basis)
    # few classes: all logits, as any head
    return train_step(layer, features(batch), num_classes, streamed if num_classes > dim else all_logits)


def resnet50_step(num_classes: int, dim: int, batch: int, method: Optional[str] = None) -> Step:
    """A training step of the whole ResNet-50; FC where there is no method."""
    from torchvision.models import resnet50

    model = resnet50(num_classes=num_classes)
    if method:
        model.fc = EBVLinear(2048, num_classes, basis=make_basis(num_classes, dim, method=method))
    return train_step(model, torch.randn(batch, 3, 224, 224), num_classes)


# name: (what, sizes, sizes of --quick, baseline, ours, further arguments of ours)
CASES: Dict[str, Tuple] = {
    'kerdock': (
        'loss, Kerdock / dense', (100_000, 1024, 1024), (10_000, 256, 64), dense_loss, streamed_loss, 'kerdock'
    ),
    'design': (
        'loss, design / dense', (100_000, 5000, 128), (10_000, 1000, 32), dense_loss, streamed_loss, 'transversal'
    ),
    'blocked': (
        'loss, dense blocked / dense', (100_000, 512, 1024), (10_000, 128, 64), dense_loss, streamed_loss, None
    ),
    'head': ('step of the head, EBV / FC', (100_000, 1024, 256), (10_000, 256, 64), fc_step, ebv_step, 'kerdock'),
    'unit': ('step, unit vectors / FC', (1000, 1000, 128), (1000, 1000, 32), fc_step, ebv_step, 'unit vectors'),
    'dense': ('step, dense basis / FC', (1000, 1000, 128), (1000, 1000, 32), fc_step, ebv_step, 'orthonormal'),
    'resnet50': (
        'step of ResNet-50, EBV / FC', (1000, 1000, 8), (100, 100, 1), resnet50_step, resnet50_step, 'orthonormal'
    ),
}  # fmt: skip
if hasattr(functional, 'linear_cross_entropy'):
    CASES['fused'] = ('loss, dense blocked / torch', *CASES['blocked'][1:3], fused_loss, streamed_loss, None)
GROWTH = ((1_000, 256), (10_000, 1024), (100_000, 1024), (1_000_000, 4096))
QUICK_GROWTH = ((1_000, 64), (10_000, 256))


def build(name: str, quick: bool, ours: bool) -> Step:
    if name.startswith('growth'):
        num_classes, dim = map(int, name.split('-')[1:])
        return streamed_loss(num_classes, dim, 128, 'kerdock')
    _, sizes, quick_sizes, baseline, own, method = CASES[name]
    sizes = quick_sizes if quick else sizes
    return own(*sizes, method) if ours else baseline(*sizes)


def extra_megabytes(name: str, quick: bool, ours: bool) -> float:
    command = [sys.executable, __file__, '--worker', name, str(int(ours))] + ['--quick'] * quick
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def worker(name: str, quick: bool, ours: bool) -> float:
    """Peak memory of two steps, above what there is before, in MB. For a training step the model counts too."""
    for tiny in (dense_loss(64, 8, 2), streamed_loss(64, 8, 2, None)):
        tiny()  # the libraries' own memory
    before = memory('VmRSS')
    step = build(name, quick, ours)
    if 'step' not in CASES.get(name, ('',))[0]:
        before = memory('VmRSS')
    with open('/proc/self/clear_refs', 'w') as file:
        file.write('5')  # forget the peak so far
    for _ in range(2):
        step()
    return memory('VmHWM') - before


def memory(key: str) -> float:
    with open('/proc/self/status') as file:
        return int(re.search(rf'{key}:\s+(\d+) kB', file.read())[1]) / 1024


def best_times(steps: List[Step], repeats: int) -> List[float]:
    times = [[] for _ in steps]
    for repeat in range(repeats + 1):
        for step, seen in zip(steps, times):
            start = time.perf_counter()
            step()
            if repeat or repeats == 1:  # the first one warms up
                seen.append(time.perf_counter() - start)
    return [min(seen) for seen in times]


def show(row: Dict[str, object]) -> None:
    print('  '.join(str(row.get(name, '')).rjust(width) for name, width in WIDTHS.items()), flush=True)


def compare(name: str, quick: bool, repeats: int) -> None:
    what, sizes, quick_sizes, *_ = CASES[name]
    baseline, ours = best_times([build(name, quick, own) for own in (False, True)], repeats)
    baseline_mb, ours_mb = (extra_megabytes(name, quick, own) for own in (False, True))
    num_classes, dim, batch = quick_sizes if quick else sizes
    show({
        'case': what, 'N': f'{num_classes:,}', 'd': dim, 'batch': batch, 'baseline': f'{baseline * 1e3:.1f} ms',
        'ours': f'{ours * 1e3:.1f} ms', 'faster': f'{baseline / ours:.2f}x', 'baseline MB': f'{baseline_mb:.0f}',
        'ours MB': f'{ours_mb:.0f}', 'smaller': f'{baseline_mb / max(ours_mb, 0.1):.1f}x',
    })  # fmt: skip


def growth(quick: bool, repeats: int, plot: Optional[str]) -> None:
    points = []
    for num_classes, dim in QUICK_GROWTH if quick else GROWTH:
        name = f'growth-{num_classes}-{dim}'
        (seconds,) = best_times([build(name, quick, True)], repeats)
        megabytes = extra_megabytes(name, quick, True)
        points.append((num_classes, seconds * 1e3, megabytes))
        show({'case': 'loss, Kerdock', 'N': f'{num_classes:,}', 'd': dim, 'batch': 128,
              'ours': f'{seconds * 1e3:.1f} ms', 'ours MB': f'{megabytes:.0f}'})  # fmt: skip
    if plot:
        import matplotlib

        matplotlib.use('Agg')
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), constrained_layout=True)
        for axis, column, label in zip(axes, (1, 2), ('ms for forward + backward', 'MB above the embeddings')):
            axis.loglog([point[0] for point in points], [point[column] for point in points], 'o-')
            axis.set(xlabel='classes', ylabel=label, title='structured basis, batch 128')
            axis.grid(alpha=0.3)
        save_figure(figure, plot)
        print(f'wrote {plot}')


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='small sizes')
    parser.add_argument('--only', nargs='+', choices=[*CASES, 'growth'], default=[*CASES, 'growth'])
    parser.add_argument('--repeats', type=int, default=3, help='steps of each kind')
    parser.add_argument('--plot', metavar='PICTURE', help='draw how time and memory grow with N')
    parser.add_argument('--worker', nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.repeats < 1:
        parser.error(f'--repeats {args.repeats}, but at least 1 is needed; give more')
    torch.manual_seed(0)
    if args.worker:
        name, ours = args.worker
        print(json.dumps(worker(name, args.quick, ours == '1')))
        return 0
    print(f'torch {torch.__version__}, {torch.get_num_threads()} threads')
    show(dict(zip(WIDTHS, WIDTHS)))
    for name in args.only:
        if name == 'growth':
            growth(args.quick, args.repeats, args.plot)
        else:
            compare(name, args.quick, args.repeats)
    return 0


if __name__ == '__main__':
    sys.exit(main())
