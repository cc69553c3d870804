"""Give a trained model more classes: python tools/add_classes.py CONFIG CHECKPOINT --add 2 --out FOLDER."""

import argparse
from pathlib import Path

from mmengine.runner.checkpoint import CheckpointLoader

from ebv_mm.export.models import save_model
from ebv_mm.launch import existing_checkpoint, existing_file, one_sentence
from ebv_mm.launch.configs import read_config
from ebv_mm.more_classes import add_classes


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description='Give a trained model more classes')
    parser.add_argument('config', type=existing_file, help='config that the model was trained with')
    parser.add_argument('checkpoint', type=existing_checkpoint, help='its checkpoint')
    parser.add_argument('--add', type=int, required=True, metavar='K', help='how many classes')
    parser.add_argument('--out', type=Path, required=True, metavar='FOLDER', help='for the new config and checkpoint')
    parser.add_argument('--traceback', action='store_true', help='show where an error came from')
    args = parser.parse_args(argv)
    if args.add < 1:
        parser.error(f'--add {args.add}: at least one class is added; give 1 or more')

    with one_sentence(args.traceback):
        cfg = read_config(args.config)
        checkpoint = CheckpointLoader.load_checkpoint(args.checkpoint, map_location='cpu')
        state = checkpoint.get('state_dict', checkpoint)
        changes = add_classes(cfg, state, args.add, args.out)
        stem = args.out / f'{Path(args.config).stem}_plus{args.add}'
        cfg.load_from = f'{stem}.pth'
        save_model(cfg, state, stem)
        for change in changes:
            print(change)
        print(f'{stem}.py, {stem}.pth; name the new classes in its data sets, then: python tools/train.py {stem}.py')


if __name__ == '__main__':
    main()
