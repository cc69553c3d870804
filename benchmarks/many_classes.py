"""What decides whether EBV learns many classes: trainings on written characters, behind docs/large_n.md.

    python -m ebv_mm.characters data/characters                # once: the data
    python benchmarks/many_classes.py run size recipe          # trains what is not finished, one after the other
    python benchmarks/many_classes.py run --dry-run            # shows what there is to train
    python benchmarks/many_classes.py report --docs docs/large_n.md --plot docs/large_n_law.png

A finished training is a small json file in benchmarks/results/many_classes/; one that was cut off goes on from its last
checkpoint in --work-dir. One thread; seconds are seconds of the processor, so that other jobs do not count.
"""

import argparse
import json
import math
import platform
import sys
import time
from pathlib import Path
from typing import Callable, List, Optional, Sequence

import numpy as np
import torch
from chosen import add_names, chosen
from many_classes_report import report
from many_classes_trials import STUDIES, Trial
from torch import Tensor, nn
from torch.nn import functional

from ebv_mm import basis_cross_entropy, basis_topk, make_basis
from ebv_mm.characters import Store, split_by_family
from ebv_mm.characters.distort import distort
from ebv_mm.output import whole_file

RESULTS = Path(__file__).parent / 'results' / 'many_classes'
FEATURES, PIXELS = 2048, 1024
TESTED = 3000
POINTS = 8  # of a curve
WARM_UP = 100
WEIGHT_DECAY = 0.02
CHECKPOINT_SECONDS = 60


class Data:
    """Training images in memory, distorted when they are asked for; some test images of fonts that were not trained."""

    def __init__(self, store: Store, trial: Trial) -> None:
        split = split_by_family(store, trial.num_classes, skip=trial.skip, min_train=trial.min_train)
        self.images = store.images(split.train)
        self.labels = torch.from_numpy(split.train_labels)
        chosen = np.random.RandomState(0).permutation(len(split.test))[:TESTED]
        self.test_images = self._tensor(store.images(split.test[chosen]))
        self.test_labels = torch.from_numpy(split.test_labels[chosen])

    def batch(self, numbers: Tensor, random: np.random.RandomState) -> Tensor:
        return self._tensor(np.stack([distort(self.images[number], random) for number in numbers.tolist()]))

    @staticmethod
    def _tensor(images: np.ndarray) -> Tensor:
        return torch.from_numpy(images)[:, None].float().div_(127.5).sub_(0.5)


def backbone(pixels: bool) -> nn.Sequential:
    """Six convolutions, 0.3 M parameters, 2,048 features; or the pixels, each of mean 0 and variance 1."""
    if pixels:
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(PIXELS, affine=False))

    def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
        )

    sizes = [(1, 24, 2), (24, 48, 1), (48, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    return nn.Sequential(*(block(*size) for size in sizes), nn.Flatten()).to(memory_format=torch.channels_last)


class GroupedLinear(nn.Linear):
    """A linear layer of blocks: each part of the outputs is made from its share of the inputs."""

    def __init__(self, inputs: int, outputs: int, groups: int) -> None:
        super().__init__(inputs // groups, outputs)
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        parts = x.view(len(x), self.groups, -1).transpose(0, 1)
        weight = self.weight.view(self.groups, -1, self.in_features)
        return torch.bmm(parts, weight.transpose(1, 2)).transpose(0, 1).reshape(len(x), -1) + self.bias


class Classifier(nn.Module):
    """FC, a cosine classifier with trained vectors, or EBV; with a hidden layer, a norm of the embedding, or without.

    Only the first ``present`` classes take part in the loss; a prediction is among all.
    """

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial, self.tau, self.present = trial, trial.tau, trial.num_classes
        features = PIXELS if trial.pixels else FEATURES
        width = trial.hidden or features
        hidden = [nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU()] if trial.hidden else []
        out = trial.num_classes if trial.classifier == 'fc' else trial.dim
        norm = [nn.BatchNorm1d(out, affine=False)] if trial.norm else []
        projection = nn.Linear(width, out) if trial.groups == 1 else GroupedLinear(width, out, trial.groups)
        with torch.no_grad():
            projection.weight *= trial.begin
        self.embed = nn.Sequential(*hidden, projection, *norm)
        if trial.classifier == 'ebv':
            self.basis = make_basis(trial.num_classes, trial.dim, method='kerdock', structured=True)
        if trial.classifier == 'cosine':
            self.vectors = nn.Parameter(functional.normalize(torch.randn(trial.num_classes, trial.dim), dim=1))

    def loss(self, features: Tensor, labels: Tensor) -> Tensor:
        v = self.embed(features)
        if not self.trial.negatives:
            return 1 - functional.cosine_similarity(v, self.basis.vectors[labels]).mean()
        if self.trial.classifier == 'ebv':
            return basis_cross_entropy(v, labels, self.basis.first(self.present), self.tau)
        return functional.cross_entropy(self._logits(v)[:, : self.present], labels)

    def predict(self, features: Tensor) -> Tensor:
        v = self.embed(features)
        if self.trial.classifier == 'ebv':
            return basis_topk(v, 1, self.basis, self.tau)[1][:, 0]
        return self._logits(v).argmax(1)

    def _logits(self, v: Tensor) -> Tensor:
        if self.trial.classifier == 'fc':
            return v
        return functional.normalize(v, dim=1) @ functional.normalize(self.vectors, dim=1).T / self.tau


class Training:
    """One trial, from its checkpoint if there is one."""

    def __init__(self, trial: Trial, store: Store, checkpoint: Path, pretrained: Callable[[], Optional[dict]]) -> None:
        self.trial, self.data, self.checkpoint = trial, Data(store, trial), checkpoint
        torch.manual_seed(trial.seed)
        self.backbone, self.classifier = backbone(trial.pixels), Classifier(trial)
        weights = pretrained()
        if weights is not None:
            self.backbone.load_state_dict(weights)
        self.model = nn.ModuleList([self.backbone, self.classifier])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), trial.rate, weight_decay=WEIGHT_DECAY)
        self.step, self.seconds, self.smooth = 0, 0.0, math.log(trial.num_classes)
        self.curve: List[dict] = []
        if checkpoint.exists():
            state = torch.load(checkpoint)
            self.model.load_state_dict(state['model'])
            self.optimizer.load_state_dict(state['optimizer'])
            self.step, self.seconds, self.smooth, self.curve = state['progress']

    def run(self) -> dict:
        trial, saved = self.trial, time.monotonic()
        while self.step < trial.steps:
            begin = time.process_time()
            loss = self._advance()
            self.seconds += time.process_time() - begin
            if not math.isfinite(loss):
                self._note(failed=True)
                break
            self.smooth = 0.95 * self.smooth + 0.05 * loss
            if self.step % max(1, trial.steps // POINTS) == 0 or self.step == trial.steps:
                self._note()
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                self._save()
                saved = time.monotonic()
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        where = f'{platform.machine()}, torch {torch.__version__}, {torch.get_num_threads()} thread'
        self.checkpoint.unlink(missing_ok=True)
        return dict(
            trial=trial.as_dict(),
            train_images=len(self.data.labels),
            tested=len(self.data.test_labels),
            parameters=parameters,
            where=where,
            curve=self.curve,
        )

    def _advance(self) -> float:
        trial, progress = self.trial, self.step / self.trial.steps
        rate = trial.rate * min(1, (self.step + 1) / WARM_UP) * max(1e-3, 0.5 * (1 + math.cos(math.pi * progress)))
        for group in self.optimizer.param_groups:
            group['lr'] = rate
        self.classifier.tau, self.classifier.present = trial.tau_at(self.step), trial.present_at(self.step)
        # what a step sees follows from its number alone: resuming changes nothing
        random = np.random.RandomState([trial.seed, self.step])
        numbers = self._numbers(self.classifier.present, random)
        images, labels = self.data.batch(numbers, random), self.data.labels[numbers]
        loss = self.classifier.loss(self.backbone(images), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return float(loss)

    def _numbers(self, present: int, random: np.random.RandomState) -> Tensor:
        pool = (self.data.labels < present).nonzero()[:, 0] if present < self.trial.num_classes else None
        size = len(self.data.labels) if pool is None else len(pool)
        numbers = torch.from_numpy(random.randint(size, size=self.trial.batch))
        return numbers if pool is None else pool[numbers]

    @torch.no_grad()
    def _note(self, failed: bool = False) -> None:
        self.model.eval()
        parts = self.data.test_images.split(250)
        right = torch.cat([self.classifier.predict(self.backbone(part)) for part in parts]) == self.data.test_labels
        self.model.train()
        top1 = 0.0 if failed else round(100 * right.float().mean().item(), 2)
        loss = None if failed else round(self.smooth, 3)
        self.curve.append(dict(step=self.step, seconds=round(self.seconds, 1), loss=loss, top1=top1))
        print(
            f'{self.trial.name}: {self.step}/{self.trial.steps}, {self.seconds:.0f} s, loss {loss}, {top1} %',
            flush=True,
        )

    def _save(self) -> None:
        progress = (self.step, self.seconds, self.smooth, self.curve)
        state = dict(model=self.model.state_dict(), optimizer=self.optimizer.state_dict(), progress=progress)
        with whole_file(self.checkpoint) as part:
            torch.save(state, part)


def train(trial: Trial, store: Store, work_dir: Path) -> None:
    """Train a trial and write its result; the backbone of a pretrained one comes first, from other characters."""

    def pretrained() -> Optional[dict]:
        if not trial.pretrained:
            return None
        source = trial.source()
        weights = work_dir / f'{source.name}.backbone.pth'
        if not weights.exists():
            before = Training(source, store, work_dir / f'{source.name}.pth', lambda: None)
            before.run()
            torch.save(before.backbone.state_dict(), weights)
        return torch.load(weights)

    result = Training(trial, store, work_dir / f'{trial.name}.pth', pretrained).run()
    with whole_file(result_file(trial)) as part:
        part.write_text(json.dumps(result) + '\n')


def trials_of(studies: Sequence[str]) -> List[Trial]:
    """The trials of some studies, each once; the first seed of all comes before the second of any."""
    trials = dict.fromkeys(trial for name in studies for trial in STUDIES[name])
    return sorted(trials, key=lambda trial: trial.seed)


def result_file(trial: Trial) -> Path:
    return RESULTS / f'{trial.name}.json'


def main(argv: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    run = commands.add_parser('run', help='train what is not finished')
    run.add_argument('studies', nargs='*', metavar='STUDY', help=f'of {", ".join(STUDIES)}; all without')
    add_names(run)
    run.add_argument('--data', type=Path, default=Path('data/characters'))
    run.add_argument('--work-dir', type=Path, default=Path('work_dirs/many_classes'))
    run.add_argument('--dry-run', action='store_true')
    shown = commands.add_parser('report', help='tables, and the picture')
    shown.add_argument('--plot', type=Path, help='write the picture here')
    shown.add_argument(
        '--docs', type=Path, metavar='PAGE', help='put the tables into a page, in place of printing them'
    )
    args = parser.parse_args(argv)
    if args.command == 'report':
        return report(RESULTS, args.plot, args.docs)
    for name in args.studies:
        if name not in STUDIES:
            parser.error(f'unknown study {name!r}; choose from {", ".join(STUDIES)}')
    trials = {trial.name: trial for trial in trials_of(args.studies or list(STUDIES))}
    trials = [trial for trial in chosen(trials, args.names, parser) if not result_file(trial).exists()]
    print(f'{len(trials)} trainings to do', flush=True)
    if args.dry_run:
        for trial in trials:
            print(trial.name)
        return 0
    torch.set_num_threads(1)
    store = Store(args.data)
    for trial in trials:
        train(trial, store, args.work_dir)
    return 0


if __name__ == '__main__':
    sys.exit(main())
