"""FC's weights as a projection: the same logits up to their length, in closed form."""

import pytest
import torch
from torch import nn

from ebv_mm import EBVLinear
from ebv_mm.basis import closed_form_basis, make_basis
from ebv_mm.conversion.agreement import Logits, agreement, fit_temperature, typical_length
from ebv_mm.conversion.weights import plain_weights, projection, put_projection, unnoticed
from ebv_mm.head import ebv_layer


def converted(fc: nn.Linear, basis, **kwargs) -> EBVLinear:
    layer = EBVLinear(fc.in_features, fc.out_features, basis=basis, prior=kwargs.get('prior'))
    put_projection(layer, projection(plain_weights(fc), layer.vectors, **kwargs))
    return layer


@pytest.mark.parametrize('num_classes, dim', [(7, 7), (7, 12), (100, 100)])
def test_the_logits_are_those_of_fc(num_classes, dim):
    fc, x = nn.Linear(16, num_classes), torch.randn(200, 16)
    layer = converted(fc, closed_form_basis(num_classes, dim))
    torch.testing.assert_close(layer.project(x) @ layer.basis.T, fc(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(layer.project(x).norm(dim=1), fc(x).norm(dim=1), rtol=1e-4, atol=1e-5)
    assert torch.equal(layer(x).argmax(1), fc(x).argmax(1))


def test_a_basis_that_is_not_quite_orthonormal_serves_as_well():
    """The authors' 81 x 81 has cosines of 0.002: the pseudo-inverse takes them into account."""
    basis = make_basis(7, 9, method='algorithm1', alpha=0.2)
    fc, x = nn.Linear(16, 7), torch.randn(50, 16)
    layer = converted(fc, basis)
    torch.testing.assert_close(layer.project(x) @ layer.basis.T, fc(x), rtol=1e-4, atol=1e-5)


def test_the_mean_over_classes_changes_no_softmax_and_makes_v_shorter():
    fc, x = nn.Linear(16, 7), torch.randn(50, 16)
    with torch.no_grad():
        fc.bias += 3
    layer = converted(fc, closed_form_basis(7, 7), groups=(7,))
    logits = layer.project(x) @ layer.basis.T
    torch.testing.assert_close(logits.softmax(1), fc(x).softmax(1), rtol=1e-4, atol=1e-6)
    assert (logits.norm(dim=1) < fc(x).norm(dim=1)).all()


def test_groups_are_centred_apart():
    """Seesaw: a softmax over the classes, and another over its objectness pair."""
    fc, x = nn.Linear(16, 9), torch.randn(50, 16)
    logits = converted(fc, closed_form_basis(9, 9), groups=(7, 2)).project(x)
    logits = logits @ closed_form_basis(9, 9).vectors.T
    for rows in (slice(0, 7), slice(7, 9)):
        torch.testing.assert_close(logits[:, rows].softmax(1), fc(x)[:, rows].softmax(1), rtol=1e-4, atol=1e-6)


def test_a_prior_is_taken_out_of_the_bias():
    fc, x = nn.Linear(16, 7), torch.randn(50, 16)
    layer = converted(fc, closed_form_basis(7, 7), prior=0.01)
    prior = torch.tensor(0.01).logit()
    torch.testing.assert_close(layer.project(x) @ layer.basis.T + prior, fc(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('dim, groups, prior', [(7, (7,), None), (9, (7,), None), (8, (), None), (8, (), 0.01)])
def test_a_constant_that_no_score_notices_makes_the_scores_those_of_fc(dim, groups, prior):
    """For a softmax it may be equally near to all classes, for sigmoids it needs a dimension of its own."""
    fc, x = nn.Linear(16, 7), torch.randn(200, 16)
    steady = 100 * fc(x).norm(dim=1).max().item()
    layer = EBVLinear(16, 7, basis=closed_form_basis(7, dim), prior=prior, tau=1 / steady)
    made = projection(plain_weights(fc), layer.vectors, groups=groups, prior=prior, steady=steady)
    put_projection(layer, made)
    scores = (lambda logits: logits.softmax(1)) if groups else torch.sigmoid
    torch.testing.assert_close(scores(layer(x)), scores(fc(x)), rtol=1e-2, atol=1e-4)
    assert torch.equal(layer(x).argmax(1), fc(x).argmax(1))


def test_where_no_constant_goes_unnoticed_there_is_none():
    assert not unnoticed(torch.eye(5), softmax=False).any()  # d = N: it would move the signs
    assert not unnoticed(closed_form_basis(6, 5).vectors, softmax=True).any()


def test_the_typical_length_is_that_of_what_scores_notice():
    fc = torch.tensor([[3.0, 1.0, 2.0], [0.0, 0.0, 3.0]]).double()
    seen = [Logits(fc, fc)]
    assert typical_length(seen, (3,), None) == pytest.approx(((1 + 1 + 0 + 1 + 1 + 4) / 2) ** 0.5)
    assert typical_length(seen, (), None) == pytest.approx((23 / 2) ** 0.5)
    assert typical_length([], (), None) == 0


def test_fewer_dimensions_give_the_nearest_projection():
    """No projection comes nearer to W in the least squares: moving it anywhere makes it worse."""
    fc = nn.Linear(16, 13)
    layer = converted(fc, closed_form_basis(13, 12))

    def distance(weight):
        return (layer.basis @ weight - fc.weight).square().sum()

    best = distance(layer.weight)
    assert all(distance(layer.weight + 1e-2 * torch.randn_like(layer.weight)) > best for _ in range(20))


def test_anchors_have_projections_of_their_own():
    fc = nn.Conv2d(4, 3 * 5, 3, padding=1)
    layer = ebv_layer(fc, 5, dict(basis=dict(num_classes=5, dim=5)))
    put_projection(layer, projection(plain_weights(fc, 3), layer.vectors))
    x = torch.randn(2, 4, 6, 6)
    fc_classes, ebv_classes = (out.unflatten(1, (3, 5)).argmax(2) for out in (fc(x), layer(x)))
    assert torch.equal(fc_classes, ebv_classes)


@pytest.mark.parametrize('groups, prior', [((6,), None), ((), None), ((), 0.01)])
def test_the_temperature_of_logits_of_one_length_is_found(groups, prior):
    """FC's logits s e + p: 1 / s is the best temperature, and then nothing differs."""
    cosines = torch.nn.functional.normalize(torch.randn(300, 6), dim=1).double()
    fc = cosines / 0.05 + (0 if prior is None else torch.tensor(prior).logit())
    seen = [Logits(fc, cosines)]
    tau = fit_temperature(seen, groups, prior)
    assert tau == pytest.approx(0.05, rel=1e-3)
    same, change, count = agreement(seen, tau, groups, prior)
    assert same == 1 and change < 1e-3 and count == 300
