"""EBV layers in the hands of torch's exporters: ONNX, TorchScript, quantisation, half precision."""

import io

import pytest
import torch
from torch import nn

from ebv_mm import EBVConv2d, EBVLinear, fold
from ebv_mm.export import Network, run_file, write
from ebv_mm.export.files import TRACE

BASIS = dict(num_classes=9, dim=12)
LAYERS = {
    'linear': lambda: (EBVLinear(6, 9, basis=BASIS), torch.randn(4, 6)),
    'conv': lambda: (EBVConv2d(6, 9, 1, basis=BASIS), torch.randn(2, 6, 5, 7)),
}
FORMS = {
    'as it is': lambda layer: layer,
    'norm kept': lambda layer: fold(layer, keep_norm=True),
    'plain': fold,
}
EVERY = pytest.mark.parametrize('form', FORMS)
ANY_LAYER = pytest.mark.parametrize('kind', LAYERS)


@pytest.fixture
def in_onnxruntime(tmp_path):
    """Export a layer, and return what runs it."""

    def export(module: nn.Module, x: torch.Tensor, opset: int):
        file = tmp_path / 'layer.onnx'
        write(Network('', module, (x,), ['y'], None), file, 'onnx', opset)
        run = run_file(file)
        return lambda x: run(x)[0]

    return export


@EVERY
@ANY_LAYER
def test_onnx_gives_the_same_logits_in_every_opset(kind, form, in_onnxruntime):
    layer, x = LAYERS[kind]()
    module = FORMS[form](layer).eval()
    more = torch.cat([x, torch.zeros_like(x), 1e3 * x])
    for opset in (*range(11, 18), *([18] if TRACE else [])):  # 18: torch's newer exporter, where there is one
        run = in_onnxruntime(module, x, opset)
        torch.testing.assert_close(run(more), module(more).detach(), rtol=1e-4, atol=1e-4)
    if form != 'plain':  # nothing in its direction is lost to the size of v
        huge = 1e20 * x
        torch.testing.assert_close(run(huge), layer(huge).detach(), rtol=1e-4, atol=1e-3)


@EVERY
@ANY_LAYER
def test_torchscript(kind, form):
    layer, x = LAYERS[kind]()
    module = FORMS[form](layer).eval()
    more = torch.cat([x, x])
    scripts = [torch.jit.trace(module, x)]
    if form == 'as it is':
        with pytest.raises(TypeError, match=r'cannot be scripted, .*; script the model that ebv_mm.fold'):
            torch.jit.script(nn.Sequential(module))
    else:
        scripts.append(torch.jit.script(module))
    for script in scripts:
        file = io.BytesIO()
        torch.jit.save(script, file)
        file.seek(0)
        torch.testing.assert_close(torch.jit.load(file)(more), module(more), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('keep_norm', [False, True])
def test_dynamic_quantisation_finds_folded_layers(keep_norm):
    layer, x = LAYERS['linear']()
    small = torch.ao.quantization.quantize_dynamic(nn.Sequential(fold(layer, keep_norm=keep_norm)), {nn.Linear})
    assert 'DynamicQuantizedLinear' in str(small)
    if keep_norm:
        scores = [model(x).softmax(1) for model in (layer, small)]
        torch.testing.assert_close(*scores, rtol=0, atol=0.05)


@pytest.mark.parametrize('keep_norm', [None, True])
def test_onnx_of_a_half_precision_layer_computes_in_float32(keep_norm, in_onnxruntime):
    layer, x = LAYERS['linear']()
    layer, x = layer.half(), x.half()
    run = in_onnxruntime(layer if keep_norm is None else fold(layer, keep_norm=True), x, 17)
    assert run(x).dtype == torch.float32
    torch.testing.assert_close(run(x), layer(x).detach(), rtol=1e-4, atol=1e-3)


def test_a_folded_layer_can_be_rounded_too():
    layer, x = LAYERS['linear']()
    folded = fold(layer, keep_norm=True).bfloat16()
    scores = folded(x.bfloat16()).softmax(1)
    assert scores.dtype == torch.float32  # the division by the norm and by tau loses nothing more
    torch.testing.assert_close(scores, layer(x).softmax(1), rtol=0, atol=0.05)


def test_an_opset_that_this_torch_cannot_write_is_refused(in_onnxruntime):
    for opset, told in ((10, 'opset = 10, but what is exported needs 11'), (99, 'opset = 99, but torch .*; give')):
        with pytest.raises(ValueError, match=told):
            in_onnxruntime(*LAYERS['linear'](), opset)


@EVERY
@ANY_LAYER
def test_torch_export(kind, form):
    layer, x = LAYERS[kind]()
    module = FORMS[form](layer).eval()
    exported = torch.export.export(module, (x,))
    program = exported.module() if hasattr(exported, 'module') else exported  # torch 2.1 calls it itself
    torch.testing.assert_close(program(x), module(x))
