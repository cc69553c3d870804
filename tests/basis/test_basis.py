import math

import pytest
import torch

from ebv_mm.basis import BasisError, DenseBasis


def test_basis_checks_its_vectors():
    for vectors, words in (
        (torch.eye(3)[0], 'shape'),
        (torch.eye(3).half(), 'float16'),
        (torch.full((2, 2), math.inf), 'infinity in row 0'),
        (2 * torch.eye(3), 'norm 2'),
    ):
        with pytest.raises(BasisError, match=words):
            DenseBasis(vectors)
