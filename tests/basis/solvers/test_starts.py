"""Where a solver begins."""

import torch

from ebv_mm.basis.solvers import tight_frame
from ebv_mm.basis.watch import Watch


def test_a_tight_frame_is_tight_with_unit_rows():
    w = tight_frame(60, 20).double()
    torch.testing.assert_close(w.square().sum(1), torch.ones(60, dtype=torch.float64), rtol=0, atol=1e-6)
    torch.testing.assert_close(w.T @ w, 3 * torch.eye(20, dtype=torch.float64), rtol=0, atol=0.02)


def test_it_takes_no_time_where_there_is_none():
    watch = Watch(1e-9)
    drawn = torch.randn(60, 20, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(tight_frame(60, 20, 5, watch=watch), drawn / drawn.norm(dim=1, keepdim=True))
