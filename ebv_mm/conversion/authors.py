"""The checkpoint and the basis that the authors of the paper published, as a checkpoint of our config."""

from pathlib import Path
from typing import Union

import torch

from ..basis import BasisError, import_basis
from ..head import EBV_LAYERS
from ..output import check_writable, whole_file
from .checkpoints import cpu_state, load_weights, read_checkpoint
from .classifiers import ConversionError
from .command import Result
from .configs import read_config
from .models import build, named_layers
from .other_names import mmpretrain_names


def convert_authors(source: str, checkpoint: str, basis: Union[str, Path], *, out: Union[str, Path]) -> Result:
    """Write ``<name>.pth`` for an EBV config out of the authors' two files.

    Their checkpoint is a state dict of a timm model whose classifier is the projection; their basis is an N x d tensor,
    read without trust and normalised by rows.

    Args:
        source: Our config, such as ``configs/mmpretrain/resnet50_ebv_a2_605e.py``.
        checkpoint, basis: Their files.
        out: Folder.
    """
    if checkpoint is None:
        raise ConversionError('--authors-basis needs the checkpoint too; give both files')
    file = Path(out) / f'{Path(source).stem}.pth'
    model = build(read_config(source))
    layers = list(named_layers(model, EBV_LAYERS))
    if len(layers) != 1:
        raise ConversionError(f'{source!r} has {len(layers)} EBV layers, but the authors have one; give their config')
    ((name, layer),) = layers
    try:
        check_writable(file)
        vectors = import_basis(basis).vectors
    except (BasisError, OSError) as error:
        raise ConversionError(str(error)) from error
    state = mmpretrain_names(read_checkpoint(checkpoint)['state_dict'])
    if len(vectors) != layer.num_vectors:
        raise ConversionError(f'{str(basis)!r} has {len(vectors)} vectors, but {source!r} needs {layer.num_vectors}')
    rows = len(state.get(f'{name}.weight', ()))
    if rows != vectors.shape[1]:
        raise ConversionError(
            f'{str(basis)!r} has {vectors.shape[1]} dimensions, but {checkpoint!r} projects into {rows}; give the '
            'basis that it was trained with'
        )
    load_weights(model, {**state, f'{name}.basis': vectors}, checkpoint)
    with whole_file(file) as part:
        torch.save(dict(meta={}, state_dict=cpu_state(model)), part)
    row = {'classifier': name, 'layer': type(layer).__name__, 'N': layer.num_vectors, 'd': layer.dim, 'tau': layer.tau}
    return Result(Path(source), file, [row], {}, [])
