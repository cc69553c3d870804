"""Damage files, make hostile ones, kill the command: count how often the package holds.

python tests/faults/fuzz.py                            the long run, whose table is in docs/reliability.md
python tests/faults/fuzz.py --files 300 --pickles 300  a shorter one
"""

import argparse
import random
import resource
import sys
from pathlib import Path
from typing import Dict, List, Optional

import torch
from checkpoints import damaged_checkpoint, damaged_recipe
from corpus import damaged, hostile_program, whole_files
from hostile import hostile_files
from kills import killed_run
from trials import Trial, counted, faults, work

from ebv_mm.basis import import_basis, load_basis, pickled_tensors


def check_is_basis(basis) -> None:
    """By another way than the package's own check."""
    vectors = basis.vectors.double()
    assert vectors.ndim == 2 and bool(((vectors * vectors).sum(1).sqrt() - 1).abs().max() < 2e-3)


def damaged_file(index: int, rng: random.Random, folder: Path) -> None:
    kind = rng.choice(list(whole_files()))
    path = folder / 'file'
    path.write_bytes(damaged(rng, whole_files()[kind]))
    check_is_basis((load_basis if kind == 'safetensors' else import_basis)(path))


def hostile_pickle(index: int, rng: random.Random, folder: Path) -> None:
    path = folder / 'file'
    path.write_bytes(hostile_program(rng))
    check_is_basis(import_basis(path))


def hostile_file(index: int, rng: random.Random, folder: Path) -> None:
    path = folder / 'file'
    path.write_bytes(list(hostile_files().values())[index])
    before = {name: vars(function).copy() for name, function in pickled_tensors._FUNCTIONS.items()}
    try:
        import_basis(path)
    finally:
        assert before == {name: vars(function) for name, function in pickled_tensors._FUNCTIONS.items()}


def any_damage(index: int, rng: random.Random, folder: Path) -> None:
    """Of each kind in turn, in one process."""
    kinds = damaged_file, hostile_pickle, damaged_recipe, damaged_checkpoint
    kinds[index % len(kinds)](index, rng, folder)


TRIALS: Dict[str, Trial] = {
    'any': any_damage,
    'files': damaged_file,
    'pickles': hostile_pickle,
    'hostile': hostile_file,
    'recipes': damaged_recipe,
    'checkpoints': damaged_checkpoint,
    'kills': killed_run,
}
WHAT = {
    'files': 'damaged basis files, of eight kinds',
    'pickles': 'pickles of shuffled and harmful instructions',
    'hostile': 'files made by hand to run code, to hang, or to take gigabytes',
    'recipes': 'damaged recipes of structured bases, in checkpoints',
    'checkpoints': 'strange and damaged matrices, in checkpoints',
    'kills': 'runs of `make_basis.py`, killed',
}
LONG = {
    'files': 10_000,
    'pickles': 5_000,
    'hostile': len(hostile_files()),
    'recipes': 1_500,
    'checkpoints': 1_500,
    'kills': 60,
}


def seconds_of_work() -> float:
    """That processes have done which ended, whatever else the machine did."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(argv: Optional[List[str]] = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ['work']:
        torch.set_num_threads(1)
        name, (seed, start, stop) = argv[1], map(int, argv[2:])
        work(TRIALS[name], name, seed, start, stop)
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in LONG.items():
        parser.add_argument(
            f'--{name}', type=int, default=count, metavar='COUNT', help=f'{WHAT[name]}; default: {count}'
        )
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args(argv)
    print(
        '| what | trials | a whole basis | refused in a sentence, or as before | faults | seconds of work |', flush=True
    )
    print('|---' * 6 + '|', flush=True)
    worst = 0
    for name, what in WHAT.items():
        count, start = getattr(args, name), seconds_of_work()
        counts = counted(Path(__file__), name, args.seed, count)
        found = faults(counts)
        good, held = counts['read'] + counts['whole'], counts['refused'] + counts['as before']
        row = (what, count, good, held, ', '.join(found) or 0, round(seconds_of_work() - start))
        print('|', ' | '.join(map(str, row)), '|', flush=True)
        worst = max(worst, bool(found))
    return worst


if __name__ == '__main__':
    sys.exit(main())
