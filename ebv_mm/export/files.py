"""Networks as files: written by torch's exporters, read back by the runtime that they are for."""

import warnings
from inspect import signature
from pathlib import Path
from typing import Tuple

import torch
from torch import Tensor

from ..output import whole_file
from .networks import Network, Run

SUFFIX = {'onnx': '.onnx', 'torchscript': '.pt'}
FORMATS = tuple(SUFFIX)
OPSET = 17
# the oldest that knows what the layers compute
FIRST_OPSET = 11
# From this opset on torch's newer exporter is asked, which reads the graph of torch.export; below, the one that traces.
FIRST_OF_GRAPHS = 18
# How the tracing one is asked for where there are both.
TRACE = dict(dynamo=False) if 'dynamo' in signature(torch.onnx.export).parameters else {}


@torch.no_grad()
def write(network: Network, path: Path, kind: str, opset: int = OPSET) -> None:
    """Write a network; the number of images, or of regions, stays free, their size is that of the example."""
    with whole_file(path) as part, warnings.catch_warnings():
        # the hosts' Python is traced: what depends on the size of an image is a constant of the file, as is meant
        warnings.filterwarnings('ignore', category=torch.jit.TracerWarning)
        if kind == 'torchscript':
            torch.jit.trace(network.module, network.inputs).save(str(part))
        else:
            _write_onnx(network, part, opset)


def _write_onnx(network: Network, path: Path, opset: int) -> None:
    names = dict(input_names=['input'], output_names=network.outputs)
    inputs = network.inputs
    if opset < FIRST_OPSET:
        raise ValueError(f'opset = {opset}, but what is exported needs {FIRST_OPSET}; give that or more')
    if opset < FIRST_OF_GRAPHS:
        options = dict(dynamic_axes={name: {0: 'batch'} for name in ('input', *network.outputs)}, **TRACE)
    elif TRACE:
        inputs = tuple(torch.cat([tensor, tensor]) for tensor in inputs)  # one image would be taken for the only number
        options = dict(
            dynamo=True, dynamic_shapes=({0: torch.export.Dim('batch')},), external_data=False, verbose=False
        )
    else:
        raise ValueError(
            f'opset = {opset}, but torch {torch.__version__} exports to {FIRST_OF_GRAPHS - 1} at most; give 11 to '
            f'{FIRST_OF_GRAPHS - 1}, or take torch 2.6 or newer'
        )
    torch.onnx.export(network.module, inputs, str(path), opset_version=opset, **names, **options)
    if opset >= FIRST_OF_GRAPHS:
        _check_opset(path, opset)


def _check_opset(path: Path, opset: int) -> None:
    """Raise where the newer exporter has left the opset at its own, which it does with a warning."""
    import onnx  # which that exporter needs too

    written = {domain.version for domain in onnx.load(path).opset_import if domain.domain == ''}
    if written != {opset}:
        raise ValueError(f'opset = {opset}, but torch {torch.__version__} wrote {written.pop()}; give that')


def run_file(path: Path) -> Run:
    """A function of tensors that runs a written network: .onnx by onnxruntime, .pt by torch."""
    if Path(path).suffix == '.pt':
        return torch.jit.load(str(path))
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            f'onnxruntime is needed to run {str(path)!r} ({error}); install it with: pip install onnxruntime'
        ) from error
    session = onnxruntime.InferenceSession(str(path), providers=['CPUExecutionProvider'])
    (name,) = [argument.name for argument in session.get_inputs()]

    def run(inputs: Tensor) -> Tuple[Tensor, ...]:
        outputs = session.run(None, {name: inputs.cpu().numpy()})
        return tuple(torch.from_numpy(output).to(inputs.device) for output in outputs)

    return run
