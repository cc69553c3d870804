"""What current torch offers: torch.compile and torch.export of dense EBV layers, without a graph break."""

import pytest
import torch
from mmengine.registry import MODELS, DefaultScope
from small_models import lenet
from torch import nn
from torch.nn import functional

from ebv_mm import EBVConv2d, EBVLinear

pytestmark = pytest.mark.both_stacks
BASIS = dict(num_classes=7, dim=5)

# The graph is captured and differentiated as for every backend; only the generated code is left out, which would take
# a C++ compiler and a minute.
BACKEND = 'aot_eager'


@pytest.fixture(autouse=True)
def _nothing_compiled_before():
    torch._dynamo.reset()


def layer_and_input(kind):
    if kind == 'linear':
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), EBVLinear(8, 7, basis=BASIS)), torch.randn(3, 6)
    return nn.Sequential(nn.Conv2d(6, 8, 3), nn.ReLU(), EBVConv2d(8, 7, 1, basis=BASIS)), torch.randn(2, 6, 5, 5)


@pytest.mark.parametrize('kind', ['linear', 'conv'])
def test_a_training_step_is_one_graph(kind):
    model, x = layer_and_input(kind)
    target = torch.randint(7, (3,) if kind == 'linear' else (2, 3, 3))

    def loss(x, target):
        return functional.cross_entropy(model(x), target)

    expected = torch.autograd.grad(loss(x, target), list(model.parameters()))
    compiled = torch.compile(loss, fullgraph=True, backend=BACKEND)
    value = compiled(x, target)
    torch.testing.assert_close(value, loss(x, target))
    for gradient, other in zip(torch.autograd.grad(value, list(model.parameters())), expected):
        torch.testing.assert_close(gradient, other)


def test_a_whole_classifier_is_one_graph():
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(lenet(dict(num_classes=7, basis=BASIS)))
    model.eval()
    x = torch.randn(2, 1, 32, 32)
    compiled = torch.compile(model, fullgraph=True, backend=BACKEND)
    torch.testing.assert_close(compiled(x, mode='tensor'), model(x, mode='tensor'))


@pytest.mark.parametrize('kind', ['linear', 'conv'])
def test_export(kind):
    model, x = layer_and_input(kind)
    exported = torch.export.export(model.eval(), (x,))
    run = exported.module() if hasattr(exported, 'module') else exported
    torch.testing.assert_close(run(x), model(x))


@pytest.mark.parametrize('kind', ['linear', 'conv'])
def test_logits_stay_float32_under_compiled_autocast(kind):
    model, x = layer_and_input(kind)

    def forward(x):
        with torch.autocast('cpu', torch.bfloat16):
            return model(x)

    logits = torch.compile(forward, fullgraph=True, backend=BACKEND)(x)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, forward(x), rtol=0.02, atol=0.1)
