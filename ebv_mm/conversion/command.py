"""Convert a config, and a checkpoint of it, into files."""

import math
from pathlib import Path
from typing import List, Optional, Union

import torch
from mmengine.config import Config

from ..basis import make_basis, save_basis
from ..output import check_writable, whole_file
from .checkpoints import Converted, convert_checkpoint, load_weights, pair_layers, read_checkpoint
from .classifiers import ConversionError
from .configs import Conversion, converted, delta, plan, read_config
from .models import build
from .other_names import mmpretrain_names

IMAGES = 8


class Result:
    """What was written, and the rows to print.

    Args:
        config, checkpoint: The files; None for no checkpoint.
        rows: One for each classifier.
        left: What stays as it is, with the reason.
        notes: Sentences for the user.
    """

    def __init__(
        self, config: Path, checkpoint: Optional[Path], rows: List[dict], left: dict, notes: List[str]
    ) -> None:
        self.config, self.checkpoint, self.rows, self.left, self.notes = config, checkpoint, rows, left, notes


def convert(
    source: str,
    checkpoint: Optional[str] = None,
    *,
    out: Union[str, Path],
    dim: Optional[int] = None,
    tau: Optional[float] = None,
    check: bool = False,
    images: int = IMAGES,
) -> Result:
    """Write ``<name>_ebv.py`` and, with a checkpoint, ``<name>_ebv.pth``; the files come last and whole.

    Args:
        source: Path or address of the config.
        checkpoint: Path or URL.
        out: Folder for all files.
        dim, tau: Of the basis and the layers; without a tau the checkpoint's is fitted.
        check: Whether to compare FC and EBV on random features too.
        images: How many images to fit the temperature on.
    """
    folder = Path(out)
    name = Path(source.split('::')[-1]).stem
    files = [folder / f'{name}_ebv.py'] + ([folder / f'{name}_ebv.pth'] if checkpoint else [])
    cfg = read_config(source)
    if cfg.filename and '::' not in source and _is_lazy(cfg):
        raise ConversionError(
            f'{source!r} is a pure Python config, which no short file can inherit; call ebv_mm.to_ebv(cfg) in it'
        )
    conversion = plan(cfg, dim=dim, tau=tau, folder=folder)
    for file in files:
        try:
            check_writable(file)
        except OSError as error:
            raise ConversionError(str(error)) from error
    # what could be wrong with the checkpoint is said before anything is written
    fc, saved = build(cfg), read_checkpoint(checkpoint) if checkpoint else None
    if saved:
        load_weights(fc, mmpretrain_names(saved['state_dict']), checkpoint)
    made = {path: make_basis(*size) for path, size in conversion.files.items() if not Path(path).exists()}
    for path, basis in made.items():
        save_basis(basis, path)
    ebv = build(converted(cfg, conversion))
    layers = pair_layers(fc, ebv, conversion.found.classifiers)
    weights = None
    if saved:
        weights = convert_checkpoint(saved, fc, layers, ebv, cfg, tau=tau, images=images)
        for classifier, changes in zip(conversion.found.classifiers, conversion.changes):
            if classifier.name in weights.taus:
                changes['tau'] = weights.taus[classifier.name]
        if 'cfg' in weights.checkpoint['meta']:  # hosts build a model of it where no config is given
            weights.checkpoint['meta']['cfg'] = converted(cfg, conversion).pretty_text
        with whole_file(files[1]) as part:
            torch.save(weights.checkpoint, part)
    text = delta(cfg, source, conversion, folder, files[1].as_posix() if checkpoint else None)
    with whole_file(files[0]) as part:
        part.write_text(text)
    rows = [_row(layer, weights, check) for layer in layers]
    left = {**conversion.found.refused, **conversion.found.left}
    return Result(files[0], files[1] if checkpoint else None, rows, left, _notes(conversion, weights))


def _row(layer, weights: Optional[Converted], check: bool) -> dict:
    before, after = layer.parameters
    row = {
        'classifier': layer.name,
        'old layer': type(layer.fc).__name__,
        'new layer': type(layer.ebv).__name__,
        'N': layer.ebv.num_vectors,
        'd': layer.ebv.dim,
        'parameters before': before,
        'after': after,
    }
    if weights is not None:
        row['tau'] = layer.ebv.tau
        if check:
            row['same class, random features'] = _percent(weights.random[layer.name].same_class)
        row['same class'] = _percent(weights.seen[layer.name].same_class)
        row['change of scores'] = _number(weights.seen[layer.name].score_change)
    return row


def _percent(share: float) -> str:
    return 'not seen' if math.isnan(share) else f'{100 * share:.2f} %'


def _number(change: float) -> str:
    return 'not seen' if math.isnan(change) else f'{change:.3f}'


def _notes(conversion: Conversion, weights: Optional[Converted]) -> List[str]:
    notes = [f'made {path}' for path in conversion.files]
    if weights is None:
        return notes
    notes.append(f'same class and change of scores: on the features of {weights.images}')
    notes.append(weights.results)
    if 'noise' in weights.images:
        notes.append("the config's test images are not here: fit tau where they are, or give --tau")
    if any(layer.ebv.dim < layer.ebv.num_vectors for layer in weights.layers):
        notes.append('d < N: the projection is the nearest in least squares, and needs fine-tuning')
    return notes


def _is_lazy(cfg: Config) -> bool:
    return not isinstance(cfg.model.get('type'), str)
