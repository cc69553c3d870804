"""Classify by the nearest class mean: python tools/class_means.py CONFIG CHECKPOINT --num-classes N.

For very many classes: train on a part of them, then give this command the training images of all. A class needs some
images, and no training. The result is a config and a checkpoint to test, to predict with and to export.
"""

from pathlib import Path
from typing import Iterator

from mmengine.device import get_device
from mmengine.runner import Runner

from ebv_mm.export.models import load_model, save_model
from ebv_mm.launch import argument_parser, existing_checkpoint, load_config, one_sentence
from ebv_mm.launch.data_files import check_data
from ebv_mm.output import Progress, check_writable


def main(argv=None) -> None:
    parser = argument_parser(__doc__.partition(':')[0], ranks=False)
    parser.add_argument('checkpoint', type=existing_checkpoint, help='its checkpoint, a file or an address')
    parser.add_argument('--num-classes', type=int, required=True, metavar='N', help='all, trained or not')
    parser.add_argument('--out', type=Path, metavar='FOLDER', help='where to write (default: WORK_DIR/means)')
    args = parser.parse_args(argv)
    if args.num_classes < 2:
        parser.error(f'--num-classes {args.num_classes}: give 2 or more')

    with one_sentence(args.traceback):
        from ebv_mm.class_means import class_means, classify_by_means, images_of_all

        cfg = load_config(args)
        images = images_of_all(cfg)
        check_data(cfg, ['train_dataloader', 'test_dataloader'])
        stem = (args.out or Path(cfg.work_dir) / 'means') / f'{Path(args.config).stem}_means'
        if args.check:
            return
        model = load_model(cfg, args.checkpoint).to(get_device())
        check_writable(Path(f'{stem}.pth'))
        loader = Runner.build_dataloader(images, seed=0)
        means = class_means(model, shown(loader), args.num_classes)
        print(f'{args.num_classes} means in {means.shape[1]} dimensions, of {len(loader.dataset)} images', flush=True)
        size = 'x'.join(map(str, means.shape))
        classify_by_means(cfg, model, means, stem.with_name(f'{size}_{stem.name}.safetensors'))
        save_model(cfg, model.state_dict(), stem, dict(loader.dataset.metainfo))
        print(f'{stem}.py, {stem}.pth; now: python tools/test.py {stem}.py {stem}.pth')


def shown(loader) -> Iterator[dict]:
    """The batches of a loader, while the progress is told."""
    with Progress() as progress:
        for done, batch in enumerate(loader, 1):
            yield batch
            progress.show('class means', done, len(loader))


if __name__ == '__main__':
    main()
