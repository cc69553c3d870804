"""Vectors that are reserved for classes to come: negatives in training, no part of predictions."""

import pytest
import torch
from cases import CASES
from torch.nn import functional

from ebv_mm import EBVConv2d, EBVLinear, fold, make_basis
from ebv_mm.basis import BasisError
from ebv_mm.packed import EBVAnchorConv2d, EBVConv1d

TAU = 0.07
STRUCTURED = dict(num_classes=8, dim=16, structured=True)
DENSE = dict(num_classes=8, dim=16)
HEADS = [case for case in CASES if case.type in ('EBVClsHead', 'EBVDecodeHead')]


@pytest.mark.parametrize('basis', [DENSE, STRUCTURED], ids=['dense', 'structured'])
def test_outputs_in_training_and_after(basis):
    layer = EBVLinear(6, 5, basis=basis, reserve=3)
    x = torch.randn(4, 6)
    v = layer.project(x).detach().double()
    wanted = functional.normalize(v) @ make_basis(8, 16).vectors.double().T / TAU
    torch.testing.assert_close(layer(x).double(), wanted, rtol=1e-4, atol=1e-4)
    layer.eval()
    torch.testing.assert_close(layer(x).double(), wanted[:, :5], rtol=1e-4, atol=1e-4)
    assert layer.products.num_classes == 5 and 'num_classes=5, reserve=3' in repr(layer)


def test_a_reserved_vector_becomes_a_class_without_a_change_of_weights():
    before = EBVConv2d(6, 5, 1, basis=DENSE, reserve=3)
    after = EBVConv2d(6, 7, 1, basis=DENSE, reserve=1)
    after.load_state_dict(before.state_dict())
    x = torch.randn(2, 6, 3, 3)
    assert torch.equal(before(x), after(x))
    torch.testing.assert_close(before.eval()(x), after.eval()(x)[:, :5])


@pytest.mark.parametrize('keep_norm', [False, True])
def test_deployed_without_its_reserve(keep_norm):
    layer = EBVLinear(6, 5, basis=DENSE, reserve=3).eval()
    x = torch.randn(4, 6)
    out = fold(layer, keep_norm=keep_norm)(x)
    assert out.shape == (4, 5) and torch.equal(out.argmax(1), layer(x).argmax(1))


@pytest.mark.parametrize('case', HEADS, ids=lambda case: case.name)
def test_heads_pass_it_on(case, basis_file):
    head = case.build(basis_file(9, 12), reserve=2)
    assert case.run(head)[1].shape[1] == 9
    assert case.run(head.eval())[1].shape[1] == 7


def test_a_box_head_refuses_it(basis_file):
    (case,) = [case for case in CASES if case.type == 'EBVBBoxHead']
    with pytest.raises(TypeError, match='takes no reserve: its last vector is the background'):
        case.build(basis_file(11, 12), reserve=2)


def test_other_shapes():
    layer = EBVConv1d(6, 5, 1, basis=DENSE, reserve=3)
    x = torch.randn(2, 6, 4)
    assert layer(x).shape == (2, 8, 4) and layer.eval()(x).shape == (2, 5, 4)
    with pytest.raises(ValueError, match='reserve = 3, but the hosts count the outputs of anchors'):
        EBVAnchorConv2d(6, 10, 1, anchors=2, basis=DENSE, reserve=3)


def test_too_few_vectors_and_no_number():
    with pytest.raises(BasisError, match='has 8 vectors, but the layer needs 10'):
        EBVLinear(6, 5, basis=DENSE, reserve=5)
    for wrong in (-1, 2.5, True):
        with pytest.raises(ValueError, match='reserve = .*give a whole number >= 0'):
            EBVLinear(6, 5, basis=DENSE, reserve=wrong)


def test_a_forgotten_background_and_a_misspelt_key_are_named():
    with pytest.raises(BasisError, match='20 vectors, but the layer needs 21.* background .*--dim 21'):
        EBVLinear(6, 21, basis=dict(num_classes=20, dim=20))
    with pytest.raises(BasisError, match="the unknown key 'num_class' and no 'num_classes'; the keys of a basis are"):
        EBVLinear(6, 21, basis=dict(num_class=20, dim=20))
