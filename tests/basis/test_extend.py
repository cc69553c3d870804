import pytest
import torch

from ebv_mm.basis import DenseBasis, coherence, extend_basis, make_basis


def check(basis, n_new, extension):
    extended = extension.basis
    assert extended.num_classes == basis.num_classes + n_new
    assert torch.equal(extended.vectors[: basis.num_classes], basis.vectors)
    assert extended.coherence == pytest.approx(coherence(extended.vectors), abs=2e-6)
    assert extension.before == basis.coherence
    assert f'{extended.min_angle:.3f}' in str(extension)


def test_orthonormal_within_the_dimension():
    basis = make_basis(5, 9)
    extension = extend_basis(basis, 4)
    check(basis, 4, extension)
    assert coherence(extension.basis.vectors) < 2e-6


@pytest.mark.parametrize('seed', [0, 7])
def test_closed_form_goes_on(seed):
    basis = make_basis(500, 64, method='kerdock', seed=seed)
    extension = extend_basis(basis, 900)
    check(basis, 900, extension)
    assert extension.cost == pytest.approx(0, abs=1e-3)


def test_closed_form_goes_on_and_on():
    basis = make_basis(500, 64, method='kerdock')
    once, twice = extend_basis(basis, 200), extend_basis(extend_basis(basis, 100).basis, 100)
    assert torch.equal(once.basis.vectors, twice.basis.vectors)
    assert once.basis.method == twice.basis.method == 'kerdock'


def test_free_directions_of_foreign_vectors():
    basis = DenseBasis(torch.nn.functional.pad(make_basis(12, 4, method='kerdock').vectors, (0, 3)))
    extension = extend_basis(basis, 3)
    check(basis, 3, extension)
    assert extension.basis.coherence == pytest.approx(basis.coherence, abs=2e-6)


def test_by_the_solver():
    basis = make_basis(30, 12, method='solver', time_limit=1)
    extension = extend_basis(basis, 6, time_limit=2)
    check(basis, 6, extension)
    assert extension.cost > 0
    random = torch.nn.functional.normalize(torch.randn(6, 12, generator=torch.Generator().manual_seed(0)))
    assert extension.basis.coherence < coherence(torch.cat([basis.vectors, random]))


def test_bad_count():
    with pytest.raises(ValueError, match='n_new = 0'):
        extend_basis(make_basis(3, 3), 0)
