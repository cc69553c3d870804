"""Folded models predict what the models before predicted, for every layer and head."""

import copy

import pytest
import torch
from cases import CASES
from torch import nn

from ebv_mm import EBVConv2d, EBVLinear, fold
from ebv_mm.packed import EBVConv1d

ALL = pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)


@pytest.fixture
def outputs(basis_file):
    """Logits of a case's classifier, before and after folding, on the same inputs."""

    def run(case, keep_norm):
        module = case.build(basis_file(9, 9)).eval()
        folded = fold(module, keep_norm=keep_norm)
        assert isinstance(case.layer(module), (EBVLinear, EBVConv2d))
        assert not any(isinstance(part, (EBVLinear, EBVConv2d)) for part in folded.modules())
        logits = []
        for model in (module, folded):
            torch.manual_seed(1)
            logits.append(case.run(model, 3)[1].detach())
        return case, folded, logits

    return run


@ALL
def test_a_plain_layer_has_the_same_argmax_and_signs(case, outputs):
    case, folded, (before, after) = outputs(case, keep_norm=False)
    assert type(case.layer(folded)) in (nn.Linear, nn.Conv2d)
    assert torch.equal(before.argmax(1), after.argmax(1))
    assert torch.equal(before > 0, after > 0)


@ALL
def test_with_the_norm_kept_the_logits_are_the_same(case, outputs):
    _, _, (before, after) = outputs(case, keep_norm=True)
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-4)


def test_the_norm_matters_where_pixels_are_interpolated():
    """As mmseg and mmdet do before they compare: pixels of another length weigh as much as the others."""
    torch.manual_seed(0)
    layer = EBVConv2d(32, 21, 1, basis=dict(num_classes=21, dim=21))
    x = torch.randn(1, 32, 6, 6).relu() * torch.rand(1, 1, 6, 6) * 10

    def predicted(classifier):
        return nn.functional.interpolate(classifier(x), scale_factor=8, mode='bilinear').argmax(1)

    agree = [(predicted(fold(layer, keep_norm=keep)) == predicted(layer)).float().mean() for keep in (True, False)]
    assert agree[0] > 0.999 and agree[1] < 0.95


@pytest.mark.parametrize('half', [torch.float16, torch.bfloat16])
def test_with_the_norm_kept_half_precision_costs_nothing(half):
    layer = EBVLinear(64, 50, basis=dict(num_classes=50, dim=50), tau=0.007).to(half)
    folded, x = fold(layer, keep_norm=True), torch.randn(9, 64).to(half)
    torch.testing.assert_close(folded(x), layer(x), rtol=1e-4, atol=1e-3)
    with torch.autocast('cpu', torch.bfloat16):
        torch.testing.assert_close(folded(x), layer(x), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize('bias', [False, True])
@pytest.mark.parametrize('keep_norm', [False, True])
def test_other_kernels_and_no_bias(bias, keep_norm):
    layer = EBVConv2d(3, 5, 3, stride=2, padding=1, bias=bias, basis=dict(num_classes=5, dim=8))
    x, folded = torch.randn(2, 3, 9, 8), fold(layer, keep_norm=keep_norm)
    assert torch.equal(folded(x).argmax(1), layer(x).argmax(1))
    if keep_norm:
        torch.testing.assert_close(folded(x), layer(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('keep_norm', [False, True])
def test_points_in_a_row(keep_norm):
    layer = EBVConv1d(6, 5, 1, basis=dict(num_classes=5, dim=8))
    x, folded = torch.randn(2, 6, 9), fold(nn.Sequential(layer), keep_norm=keep_norm)
    assert not any(isinstance(part, EBVConv1d) for part in folded.modules())
    assert torch.equal(folded(x).argmax(1), layer(x).argmax(1))
    if keep_norm:
        torch.testing.assert_close(folded(x), layer(x), rtol=1e-4, atol=1e-4)


def test_the_model_itself_is_left_alone():
    model = nn.Sequential(nn.ReLU(), EBVLinear(4, 5, basis=dict(num_classes=5, dim=8)))
    before = copy.deepcopy(model)
    assert type(fold(model)[1]) is nn.Linear and isinstance(model[1], EBVLinear)
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), before.state_dict().values()))


def test_a_layer_in_several_places_stays_one():
    layer = EBVLinear(4, 5, basis=dict(num_classes=5, dim=8))
    folded = fold(nn.ModuleDict(dict(levels=nn.ModuleList([layer, layer]), other=nn.Sequential(layer))))
    assert type(folded['levels'][0]) is nn.Linear
    assert folded['levels'][0] is folded['levels'][1] is folded['other'][0]


@pytest.mark.parametrize('method, dim', [('kerdock', 16), ('transversal', 35)])
def test_a_structured_basis_becomes_its_matrix(method, dim):
    layer = EBVLinear(8, 90, basis=dict(num_classes=90, dim=dim, method=method, structured=True))
    x = torch.randn(50, 8)
    plain = fold(nn.Sequential(layer))[0]
    assert type(plain) is nn.Linear and torch.equal(plain(x).argmax(1), layer(x).argmax(1))
    torch.testing.assert_close(fold(layer, keep_norm=True)(x), layer(x), rtol=1e-4, atol=1e-4)


def test_a_missing_basis_is_refused():
    with pytest.raises(FileNotFoundError, match='make it with'):
        fold(EBVLinear(4, 5, basis='5x16.safetensors'))
