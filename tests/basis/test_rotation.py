"""Random rotations: orthogonal, the same in parts, and differentiable by their own transpose."""

import pytest
import torch

from ebv_mm.basis.rotation import Rotation, hartley


@pytest.mark.parametrize('dim', [1, 2, 7, 16])
def test_hartley_is_its_matrix(dim):
    angles = 2 * torch.pi * torch.outer(torch.arange(dim), torch.arange(dim)).double() / dim
    matrix = (angles.cos() + angles.sin()) / dim**0.5
    rows = torch.randn(3, dim, dtype=torch.float64)
    assert torch.allclose(hartley(rows), rows @ matrix)


@pytest.mark.parametrize('dim', [1, 6, 9])
def test_a_rotation_and_its_way_back(dim):
    rotation = Rotation(dim, seed=3)
    matrix = rotation(torch.eye(dim, dtype=torch.float64))
    assert torch.allclose(matrix @ matrix.T, torch.eye(dim, dtype=torch.float64))
    rows = torch.randn(5, dim, dtype=torch.float64, requires_grad=True)
    for chunk in (1, 2, 5, 100):
        assert torch.allclose(rotation.turned_back(rows, chunk), rows @ matrix.T)
    assert torch.autograd.gradcheck(lambda x: rotation.turned_back(x, 2), rows)
    assert torch.autograd.gradgradcheck(lambda x: rotation.turned_back(x, 2).square(), rows)


def test_in_single_precision():
    rotation = Rotation(64, seed=0)
    rows = torch.randn(4, 64)
    turned = rotation.to(rows.device, rows.dtype).turned_back(rows, 3)
    assert turned.dtype == torch.float32
    assert torch.allclose(turned.double(), rotation.back(rows.double()), atol=1e-6)
