"""Export a trained model: python tools/export.py CONFIG CHECKPOINT --to onnx|torchscript|fc.

onnx, torchscript: files that need neither ebv_mm nor its host. A classifier or a segmentor is one network; a two-stage
detector is its trunk (backbone, neck, RPN) and its heads. Their inputs are what the host's data preprocessor gives.
fc: a config and a checkpoint of the host's own head, for the host without ebv_mm.
"""

import argparse
import json
from pathlib import Path

import torch

from ebv_mm.export import FORMATS, agreement, linear_twin, networks_of, plugged, run_file, write
from ebv_mm.export.files import OPSET, SUFFIX
from ebv_mm.export.linear import names_of_ours
from ebv_mm.export.models import image_of, load_model, save_model, test_batches
from ebv_mm.launch import argument_parser, existing_checkpoint, load_config, one_sentence
from ebv_mm.launch.data_files import check_data
from ebv_mm.output import whole_file


def main(argv=None) -> None:
    args = parse_args(argv)
    with one_sentence(args.traceback):
        cfg = load_config(args)
        if args.images:
            check_data(cfg, ['test_dataloader'])
        if args.check:
            return
        model = load_model(cfg, args.checkpoint)
        batches = list(test_batches(cfg, args.images)) if args.images else []
        folder = Path(args.out or Path(cfg.work_dir) / 'export')
        stem = folder / Path(args.config).stem
        if args.to == 'fc':
            export_linear(model, cfg, batches, stem)
        else:
            export_networks(model, batches, stem, args)


def parse_args(argv) -> argparse.Namespace:
    parser = argument_parser(__doc__.partition('\n')[0], ranks=False)
    parser.add_argument('checkpoint', type=existing_checkpoint, help='checkpoint, a file or an address')
    parser.add_argument('--to', required=True, choices=[*FORMATS, 'fc'], help='what to make')
    parser.add_argument('--out', metavar='FOLDER', help='where to write (default: WORK_DIR/export)')
    parser.add_argument(
        '--images',
        type=int,
        default=16,
        help='compare the predictions on so many test images of the config (default: %(default)s); 0: on none',
    )
    parser.add_argument(
        '--shape', type=int, nargs=2, metavar=('H', 'W'), help='of the images (default: that of the first test image)'
    )
    parser.add_argument('--opset', type=int, default=OPSET, help='of ONNX (default: %(default)s)')
    args = parser.parse_args(argv)
    if args.images < 0:
        parser.error(f'--images {args.images}: give 0 or more')
    if args.to == 'fc' and not args.images:
        parser.error('--images 0: fc needs images, on which its temperature is fitted; give some')
    if args.to != 'fc' and not args.images and args.shape is None:
        parser.error('--images 0: without a test image the size must be told; give --shape H W')
    return args


def export_networks(model: torch.nn.Module, batches: list, stem: Path, args: argparse.Namespace) -> None:
    mean = getattr(model.data_preprocessor, 'mean', None)
    channels = 3 if mean is None else len(mean)
    images = torch.randn(1, channels, *args.shape) if args.shape else image_of(model, batches[0])
    networks = networks_of(model, images)
    runs = {}
    for network in networks:
        path = stem.with_name(f'{stem.name}{"." if network.name else ""}{network.name}{SUFFIX[args.to]}')
        write(network, path, args.to, args.opset)
        if batches:
            runs[network.name] = run_file(path)
        print(f'{path}: input {tuple(network.inputs[0].shape)} -> {", ".join(network.outputs)}')
    with whole_file(stem.with_name(f'{stem.name}.json')) as part:
        part.write_text(json.dumps(description(model, images), indent=2))
    fitting = [batch for batch in batches if image_of(model, batch).shape == images.shape]
    if len(fitting) < len(batches):
        print(f'{len(batches) - len(fitting)} of {len(batches)} test images have another size and are not compared')
    if fitting:
        print(agreement(model, plugged(model, networks, runs), fitting))


def description(model: torch.nn.Module, images: torch.Tensor) -> dict:
    """What who runs the files must know: how images are prepared, and what the classes are called."""
    preprocessor = model.data_preprocessor
    values = {name: getattr(preprocessor, name, None) for name in ('mean', 'std')}
    rgb = any(getattr(preprocessor, name, False) for name in ('to_rgb', '_channel_conversion', 'channel_conversion'))
    return dict(
        size=list(images.shape[-2:]),
        from_bgr_to_rgb=rgb,
        **{name: value.flatten().tolist() if torch.is_tensor(value) else None for name, value in values.items()},
        classes=(getattr(model, 'dataset_meta', None) or {}).get('classes'),
    )


def export_linear(model: torch.nn.Module, cfg, batches: list, stem: Path) -> None:
    twin, twin_cfg, scales = linear_twin(model, cfg, batches)
    stem = stem.with_name(f'{stem.name}_fc')
    save_model(twin_cfg, twin.state_dict(), stem, model.dataset_meta)
    for name, scale in scales.items():
        print(f'{name}: scale {scale:.4g}')
    print(f'{stem}.py, {stem}.pth')
    left = names_of_ours(twin_cfg)
    if left:
        print(f'the config still needs ebv_mm, because it names {", ".join(left)}')
    print(agreement(model, twin, batches))


if __name__ == '__main__':
    main()
