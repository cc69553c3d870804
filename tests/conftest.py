import os

# On some CPUs torch's bfloat16 kernels die with an illegal instruction unless this is set before torch is imported.
os.environ.setdefault('ONEDNN_MAX_CPU_ISA', 'AVX512_CORE')
# What is printed is compared, and some shells ask for colours everywhere.
os.environ.pop('FORCE_COLOR', None)
os.environ.pop('TTY_COMPATIBLE', None)

from pathlib import Path

import pytest
import torch

from ebv_mm import make_basis, save_basis

REPO = Path(__file__).parent.parent
# Small problems are quicker on one thread, by far so on a machine with other jobs.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason='there is no GPU')


@pytest.fixture(params=['cpu', pytest.param('cuda', marks=[pytest.mark.gpu, GPU])])
def device(request) -> torch.device:
    """Where a test of layers, losses and heads runs: on the CPU, and on a GPU where there is one."""
    return torch.device(request.param)


@pytest.fixture
def basis_file(tmp_path):
    """Make a basis file of a size: ``basis_file(11, 8)``."""

    def make(num_classes: int, dim: int, seed: int = 0, name: str = '') -> str:
        path = tmp_path / (name or f'{num_classes}x{dim}_seed{seed}.safetensors')
        save_basis(make_basis(num_classes, dim, seed=seed), path)
        return str(path)

    return make
