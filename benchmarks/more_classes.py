"""Eight classes of CIFAR-10, then two more: what becomes of the old ones, with EBV, with a reserve, and with FC.

Each model is trained on the first eight classes and tested on them; then it gets two classes more and is tested on the
old ones again, before any training; then it is trained on, by images of the new classes alone, or of all. New classes
begin at a logit of 0: rows of zeros for FC, dimensions of their own for EBV, as tools/add_classes.py gives them; but
reserved vectors stay as they were trained. A run that is interrupted goes on where it was: every model that is done
stands in the results.

    python benchmarks/more_classes.py --data data/cifar10/cifar-10-batches-py --out docs/results/more_classes.json
"""

import argparse
import copy
import json
import pickle
import time
from pathlib import Path
from typing import Dict, NamedTuple, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from ebv_mm import CIFARResNet, EBVLinear
from ebv_mm.basis import DenseBasis, extend_basis
from ebv_mm.more_classes import widened_basis, zero_rows
from ebv_mm.output import whole_file

torch.set_num_threads(1)  # so that every machine computes the same
OLD, NEW = 8, 2
FEATURES = 64
MEAN, STD = (125.3, 123.0, 113.9), (63.0, 62.1, 66.7)


class Kind(NamedTuple):
    """A classifier: FC where there is no dim."""

    dim: int = 0
    reserve: int = 0

    def __str__(self) -> str:
        return f'EBV d = {self.dim}{", reserve" if self.reserve else ""}' if self.dim else 'FC'


# In 16 dimensions ten vectors are orthogonal; in 6 they are 70.5 degrees apart.
KINDS = (Kind(), Kind(16), Kind(16, NEW), Kind(6), Kind(6, NEW))
# Of the old classes: trained; with two more as they come; with two more at a logit of 0. Then trained on.
COLUMNS = ('old_before', 'old_raw', 'old_added', 'new_only_old', 'new_only_new', 'all_old', 'all_new')


class Settings(NamedTuple):
    """Of all runs, and part of the results."""

    images: int
    epochs: int
    more_epochs: int
    size: int
    more_rate: float
    batch: int = 64
    rate: float = 0.1
    weight_decay: float = 5e-4


class Images(NamedTuple):
    pixels: Tensor  # (n, 3, size, size), normalised
    labels: Tensor

    def of(self, low: int, high: int) -> 'Images':
        """Those of the classes low to high - 1."""
        chosen = (self.labels >= low) & (self.labels < high)
        return Images(self.pixels[chosen], self.labels[chosen])


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', type=Path, required=True, help='folder with data_batch_1 ... test_batch')
    parser.add_argument('--out', type=Path, required=True, help='results, a .json file')
    parser.add_argument('--images', type=int, default=500, help='training images of a class (default: %(default)s)')
    parser.add_argument('--epochs', type=int, default=12, help='on the eight classes (default: %(default)s)')
    parser.add_argument('--more-epochs', type=int, default=4, help='after the two have come (default: %(default)s)')
    parser.add_argument(
        '--size', type=int, default=16, help='edge of the images, 32 or a part of it (default: %(default)s)'
    )
    parser.add_argument('--more-rate', type=float, default=0.03, help='largest, of that (default: %(default)s)')
    parser.add_argument('--seeds', type=int, default=3, help='models of each kind (default: %(default)s)')
    args = parser.parse_args(argv)
    settings = Settings(args.images, args.epochs, args.more_epochs, args.size, args.more_rate)
    train, test = load(args.data, settings)
    results = read_results(args.out, settings)
    for seed in range(args.seeds):
        for kind in KINDS:
            name = f'{kind}; seed {seed}'
            if name not in results:
                start = time.monotonic()
                results[name] = dict(show(kind, seed, train, test, settings), seconds=round(time.monotonic() - start))
                with whole_file(args.out) as part:
                    part.write_text(json.dumps(dict(settings=settings._asdict(), runs=results), indent=1))
            print(name, results[name], flush=True)
    print(table(results))


def read_results(path: Path, settings: Settings) -> Dict[str, dict]:
    if not path.exists():
        return {}
    content = json.loads(path.read_text())
    if content['settings'] != settings._asdict():
        raise SystemExit(f'{path} was made with other settings, {content["settings"]}; choose another --out')
    return content['runs']


def show(kind: Kind, seed: int, train: Images, test: Images, settings: Settings) -> Dict[str, float]:
    """Accuracies in per cent, of one model."""
    torch.manual_seed(seed)
    model = nn.Sequential(CIFARResNet(20, channels_last=True), _Pool(), classifier(kind))
    fit(model, train.of(0, OLD), settings.epochs, settings.rate, settings)
    result = dict(old_before=accuracy(model, test.of(0, OLD)))
    for name, raw in (('old_raw', True), ('old_added', False)):
        wide = nn.Sequential(*model[:2], extended(model[2], raw=raw))
        result[name] = accuracy(wide, test.of(0, OLD))
    for name, images in (('new_only', train.of(OLD, OLD + NEW)), ('all', train)):
        further = copy.deepcopy(wide)
        torch.manual_seed(seed)
        fit(further, images, settings.more_epochs, settings.more_rate, settings)
        result[f'{name}_old'] = accuracy(further, test.of(0, OLD))
        result[f'{name}_new'] = accuracy(further, test.of(OLD, OLD + NEW))
    return result


def classifier(kind: Kind) -> nn.Module:
    if not kind.dim:
        return nn.Linear(FEATURES, OLD)
    basis = dict(num_classes=OLD + kind.reserve, dim=kind.dim)
    return EBVLinear(FEATURES, OLD, basis=basis, balanced_init=True, reserve=kind.reserve)


@torch.no_grad()
def extended(layer: nn.Module, *, raw: bool) -> nn.Module:
    """The classifier with two classes more: their logits are 0, or what they are.

    Raw are rows as torch begins them for FC, and for EBV vectors within the old dimensions. A reserve stays as it is.
    """
    rows, weight, bias = 0, layer.weight, layer.bias
    if not isinstance(layer, EBVLinear):
        wide, rows = nn.Linear(FEATURES, OLD + NEW), NEW
        if raw:
            wide.weight[:OLD], wide.bias[:OLD] = weight, bias
            return wide
    else:
        basis = DenseBasis(layer.basis)
        if raw and not layer.reserve:
            basis = extend_basis(basis, NEW).basis
        elif not layer.reserve:
            basis, rows = DenseBasis(widened_basis(basis.vectors, NEW)), NEW
        wide = EBVLinear(FEATURES, OLD + NEW, basis=basis)
    wide.weight.copy_(zero_rows(weight, rows))
    wide.bias.copy_(zero_rows(bias, rows))
    return wide


class _Pool(nn.Module):
    def forward(self, stages: Tuple[Tensor]) -> Tensor:
        return stages[-1].mean((2, 3))


def fit(model: nn.Module, images: Images, epochs: int, rate: float, settings: Settings) -> None:
    """SGD with a cosine, random shifts and flips."""
    model.train()
    steps = epochs * (len(images.labels) // settings.batch)
    optimizer = torch.optim.SGD(model.parameters(), rate, 0.9, weight_decay=settings.weight_decay, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    for _ in range(epochs):
        for chosen in torch.randperm(len(images.labels)).split(settings.batch):
            if len(chosen) < settings.batch:
                continue
            loss = functional.cross_entropy(model(augmented(images.pixels[chosen])), images.labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5)
            optimizer.step()
            schedule.step()


def augmented(pixels: Tensor) -> Tensor:
    """Each batch shifted by up to an eighth, each image flipped or not."""
    size = pixels.shape[-1]
    most = size // 8
    x, y = torch.randint(0, 2 * most + 1, (2,)).tolist()
    pixels = functional.pad(pixels, (most,) * 4)[..., y : y + size, x : x + size]
    flip = torch.rand(len(pixels)) < 0.5
    return torch.where(flip[:, None, None, None], pixels.flip(-1), pixels).contiguous(memory_format=torch.channels_last)


@torch.no_grad()
def accuracy(model: nn.Module, images: Images) -> float:
    model.eval()
    batches = zip(images.pixels.split(500), images.labels.split(500))
    right = sum(int((model(pixels).argmax(1) == labels).sum()) for pixels, labels in batches)
    return round(100 * right / len(images.labels), 2)


def load(folder: Path, settings: Settings) -> Tuple[Images, Images]:
    """CIFAR-10 from its own pickles: the first training images of each class, and all test images."""
    train = [_read(folder / f'data_batch_{number}', settings.size) for number in range(1, 6)]
    pixels, labels = (torch.cat(parts) for parts in zip(*train))
    chosen = torch.cat([(labels == k).nonzero()[: settings.images, 0] for k in range(OLD + NEW)])
    return Images(pixels[chosen], labels[chosen]), Images(*_read(folder / 'test_batch', settings.size))


def _read(file: Path, size: int) -> Tuple[Tensor, Tensor]:
    with file.open('rb') as stream:
        content = pickle.load(stream, encoding='latin1')
    pixels = torch.from_numpy(content['data']).view(-1, 3, 32, 32).float()
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    return functional.adaptive_avg_pool2d((pixels - mean) / std, size), torch.tensor(content['labels'])


def table(results: Dict[str, dict]) -> str:
    """Mean and range over the seeds, as Markdown."""
    lines = [f'| | {" | ".join(COLUMNS)} |', f'|{"---|" * (len(COLUMNS) + 1)}']
    for kind in KINDS:
        runs = [result for name, result in results.items() if name.startswith(f'{kind};')]
        cells = []
        for column in COLUMNS if runs else ():
            values = [run[column] for run in runs]
            cells.append(f'{sum(values) / len(values):.1f} ({min(values):.1f} to {max(values):.1f})')
        lines.append(f'| {kind} | {" | ".join(cells)} |')
    return '\n'.join(lines)


if __name__ == '__main__':
    main()
