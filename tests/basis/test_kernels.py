"""The compiled kernel against a softmax of the whole matrix of logits; and what happens where it cannot be compiled."""

import shutil
import stat
from pathlib import Path

import pytest
import torch

from ebv_mm.basis import make_basis
from ebv_mm.basis.kernels import build
from ebv_mm.basis.kernels.hadamard import hadamard_library
from ebv_mm.basis.threads import over_rows

NEEDS_COMPILER = pytest.mark.skipif(not shutil.which('cc'), reason='no C compiler')
SIZES = [
    (16, 16, 'kerdock'),
    (100, 16, 'kerdock'),
    (144, 16, 'kerdock'),  # all of it, the unit vectors too
    (100, 19, 'kerdock'),  # three coordinates are not used
    (700, 33, 'gold'),
    (3000, 64, 'delsarte-goethals'),
    (1500, 256, 'kerdock'),
    (3000, 512, 'gold'),
]


@NEEDS_COMPILER
@pytest.mark.parametrize('num_classes, dim, method', SIZES)
@pytest.mark.parametrize('batch', [0, 1, 3, 16, 37])
@pytest.mark.parametrize('tau', [0.5, 0.007])
def test_sums_and_best_classes(num_classes, dim, method, batch, tau):
    basis = make_basis(num_classes, dim, method=method, structured=True, rotate=False)
    products = basis.products.to(torch.device('cpu'), torch.float32)
    assert products.kernel is not None
    z = torch.nn.functional.normalize(torch.randn(batch, dim)) / tau
    named = torch.randint(num_classes, (batch, 3))
    vectors = basis.vectors.double()
    logits = z.double() @ vectors.T

    sums = products.soft_sums(z, named, True)
    close = dict(rtol=2e-5, atol=2e-6 / tau)
    torch.testing.assert_close(sums.log_sum, logits.logsumexp(1), **close)
    torch.testing.assert_close(sums.picked.double(), logits.gather(1, named), **close)
    mean = (sums.mean / sums.total[:, None]).double()
    torch.testing.assert_close(mean, logits.softmax(1) @ vectors, rtol=0, atol=2e-6 / tau)
    assert products.soft_sums(z, named, False).mean is None

    values, classes, log_sum = products.largest(z, 5)
    torch.testing.assert_close(values.double(), logits.topk(5, 1).values, **close)
    torch.testing.assert_close(logits.gather(1, classes), values.double(), **close)
    assert all(len(set(row.tolist())) == 5 for row in classes)
    torch.testing.assert_close(log_sum, logits.logsumexp(1), **close)


@NEEDS_COMPILER
def test_equal_logits_and_one_far_above_the_others():
    products = make_basis(100, 16, method='kerdock', structured=True, rotate=False).products.to(
        torch.device('cpu'), torch.float32
    )
    zero = products.soft_sums(torch.zeros(2, 16), torch.zeros(2, 1, dtype=torch.int64), True)
    torch.testing.assert_close(zero.log_sum, torch.tensor(100.0, dtype=torch.float64).log().expand(2))
    z = products.rows(torch.tensor([7])) * 1e4  # exp of all others underflows
    far = products.soft_sums(z, torch.tensor([[7]]), True)
    assert far.total.item() == pytest.approx(1) and far.picked.item() == pytest.approx(1e4, rel=1e-5)
    assert products.largest(z, 1)[1].item() == 7


def test_rows_are_covered_once_whatever_the_threads():
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            for batch in (0, 1, 16, 100, 1000):
                seen = torch.zeros(batch)
                over_rows(batch, 16, lambda rows, seen=seen: seen[rows].add_(1))
                assert (seen == 1).all()
            with pytest.raises(KeyError):
                over_rows(100, 1, lambda rows: {}[rows.start])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A small C file, and a cache that nobody else uses."""
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.delenv('CC', raising=False)
    monkeypatch.delenv(build.SWITCH, raising=False)
    file = tmp_path / 'answer.c'
    file.write_text('int answer(void) { return 42; }')
    return file


@NEEDS_COMPILER
def test_compiled_once_and_kept(source, tmp_path, monkeypatch):
    assert build.load(source).answer() == 42
    assert len(list((tmp_path / 'cache' / 'ebv_mm' / 'kernels').iterdir())) == 1
    monkeypatch.setattr(build, '_compile', None)
    assert build.load(source).answer() == 42


def test_a_damaged_library_is_not_used(source, monkeypatch):
    monkeypatch.setattr(build, '_compile', lambda source, compiler, out: Path(out).write_bytes(b'damaged'))
    with pytest.raises(build.NoKernelError, match='cannot be used'):
        build.load(source)


@NEEDS_COMPILER
def test_a_cache_that_cannot_be_written_to(source, tmp_path, monkeypatch):
    (tmp_path / 'file').write_text('')
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'file'))
    assert build.load(source).answer() == 42


@pytest.mark.parametrize(
    'setting, words',
    [
        (dict(EBV_MM_KERNELS='off'), 'EBV_MM_KERNELS=off switches'),
        (dict(CC='no-such-compiler'), 'no-such-compiler cannot be run'),
        (dict(PATH=''), 'there is no C compiler; install one'),
    ],
)
def test_why_there_is_no_kernel(source, monkeypatch, setting, words):
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(build.NoKernelError, match=words):
        build.load(source)


@NEEDS_COMPILER
def test_what_does_not_compile(source):
    source.write_text('nonsense')
    with pytest.raises(build.NoKernelError, match='cannot compile answer.c'):
        build.load(source)


@NEEDS_COMPILER
def test_a_compiler_that_knows_no_native(source, tmp_path, monkeypatch):
    compiler = tmp_path / 'old-cc'
    compiler.write_text('#!/bin/sh\nfor word; do [ "$word" = -march=native ] && exit 1; done\nexec cc "$@"\n')
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv('CC', str(compiler))
    assert build.load(source).answer() == 42


def test_without_a_kernel_torch_does_the_same_and_it_is_said(monkeypatch, caplog):
    basis = make_basis(300, 64, method='kerdock', structured=True)
    z, named = torch.randn(5, 64), torch.randint(300, (5, 1))
    with_kernel = basis.products.to(torch.device('cpu'), torch.float32).soft_sums(z, named, True)
    monkeypatch.setenv(build.SWITCH, 'off')
    hadamard_library.cache_clear()
    try:
        again = make_basis(300, 64, method='kerdock', structured=True)
        products = again.products.to(torch.device('cpu'), torch.float32)
        assert products.kernel is None and 'EBV_MM_KERNELS=off' in caplog.text
        for one, other in zip(products.soft_sums(z, named, True), with_kernel):
            torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-5)
    finally:
        hadamard_library.cache_clear()
