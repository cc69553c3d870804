"""The noise of a fixed basis, measured: what one step of the projection does to the logits, against one step of FC.

    python benchmarks/many_classes_noise.py --plot docs/large_n_noise.png

For plain gradient descent on logits that are not normalised, FC moves the logits of a batch by -eta K R, with the Gram
matrix K of the features and the residuals R = softmax - one-hot (B x N), and EBV by -eta K R G, with the Gram matrix G
of the basis. R (G - I) is the noise, in root mean square sqrt(N / d - 1) times R for a tight basis and a random R.
Normalising v and AdamW change that; their columns are measured in the same way: the part of the change that lies along
FC's (the signal), and the rest over it (the noise). Seconds on one core.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ebv_mm import make_basis
from ebv_mm.many_classes import tau_for
from ebv_mm.output import new_figure, print_table, save_figure, whole_file

RESULT = Path(__file__).parent / 'results' / 'many_classes_noise.json'
SIZES = ((1000, 64), (1000, 256), (1000, 1024), (5000, 256), (5000, 1024), (5000, 4096))
FEATURES, BATCH = 512, 256
RATE = 1e-3
NAMES = {'sqrt(N / d - 1)': 'theory', 'gradient descent': 'plain', 'v normalised': 'normalised', 'AdamW': 'adamw'}

Logits = Callable[[Tensor], Tensor]  # of a projection


def change(logits: Logits, weight: Tensor, labels: Tensor, adam: bool) -> Tensor:
    """How one step moves the logits of its own batch."""
    weight = weight.clone().requires_grad_()
    optimizer = torch.optim.AdamW([weight], RATE, weight_decay=0) if adam else torch.optim.SGD([weight], RATE)
    before = logits(weight)
    functional.cross_entropy(before, labels).backward()
    optimizer.step()
    with torch.no_grad():
        return logits(weight) - before


def noise_over_signal(moved: Tensor, reference: Tensor) -> float:
    """Of a change of logits: the part that is not along the reference, over the part that is."""
    share = (moved * reference).sum() / (reference * reference).sum()
    return float((moved - share * reference).norm() / (share * reference).norm())


def measure(num_classes: int, dim: int, seed: int) -> Dict[str, float]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(BATCH, FEATURES, generator=generator)
    labels = torch.randint(num_classes, (BATCH,), generator=generator)
    vectors = make_basis(num_classes, dim, method='kerdock', structured=False).vectors
    tau = tau_for(dim)
    projection = torch.randn(dim, FEATURES, generator=generator) / math.sqrt(FEATURES * dim)

    def plain(weight: Tensor) -> Tensor:
        return x @ weight.T @ vectors.T / tau

    def normalised(weight: Tensor) -> Tensor:
        return functional.normalize(x @ weight.T, dim=1) @ vectors.T / tau

    # FC from the same logits, hence the same residuals
    fc = change(lambda weight: x @ weight.T, vectors @ projection / tau, labels, adam=False)
    direction = normalised(projection).detach().requires_grad_()
    functional.cross_entropy(direction, labels).backward()
    wanted = -(x @ x.T) @ direction.grad  # what FC would do from the normalised logits
    return dict(
        theory=math.sqrt(max(0.0, num_classes / dim - 1)),
        plain=noise_over_signal(change(plain, projection, labels, adam=False), fc),
        normalised=noise_over_signal(change(normalised, projection, labels, adam=False), wanted),
        adamw=noise_over_signal(change(normalised, projection, labels, adam=True), wanted),
    )


def measure_all(seeds: Sequence[int]) -> List[dict]:
    out = []
    for num_classes, dim in SIZES:
        runs = [measure(num_classes, dim, seed) for seed in seeds]
        means = {name: round(sum(run[name] for run in runs) / len(runs), 3) for name in runs[0]}
        out.append(dict(num_classes=num_classes, dim=dim, seeds=len(runs), **means))
    return out


def rows(results: Sequence[dict]) -> List[Dict[str, object]]:
    return [
        {'N': f'{one["num_classes"]:,}', 'd': one['dim'], 'N / d': f'{one["num_classes"] / one["dim"]:.3g}',
         **{title: f'{one[name]:.2f}' for title, name in NAMES.items()}}
        for one in results
    ]  # fmt: skip


def draw(results: Sequence[dict], path: Path) -> None:
    """Noise over signal against N / d, with the theory as a line."""
    figure = new_figure(6, 4)
    axes = figure.subplots()
    ratios = [one['num_classes'] / one['dim'] for one in results]
    line = [1 + step / 50 * (max(ratios) - 1) for step in range(51)]
    axes.plot(line, [math.sqrt(ratio - 1) for ratio in line], 'k:', label='sqrt(N / d - 1)')
    for title, name in NAMES.items():
        if name != 'theory':
            axes.plot(ratios, [one[name] for one in results], 'o', label=title)
    axes.set(xlabel='N / d', ylabel='noise over signal of one step', title='What a step does to the other logits')
    axes.legend()
    save_figure(figure, path)


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--plot', type=Path, help='write the picture here')
    args = parser.parse_args(argv)
    results = measure_all(range(args.seeds))
    with whole_file(RESULT) as part:
        part.write_text(json.dumps(results, indent=1) + '\n')
    print_table(rows(results), 'noise over signal of one step, relative to FC')
    if args.plot is not None:
        draw(results, args.plot)
    return 0


if __name__ == '__main__':
    sys.exit(main())
