"""benchmarks/more_classes.py, on noise in the shape of CIFAR-10."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from scripts import load_script


@pytest.fixture
def benchmark():
    return load_script('benchmarks/more_classes.py')


@pytest.fixture
def arguments(tmp_path):
    random = np.random.default_rng(0)
    for name in [*(f'data_batch_{number}' for number in range(1, 6)), 'test_batch']:
        content = dict(data=random.integers(0, 256, (80, 3072), dtype=np.uint8), labels=[k % 10 for k in range(80)])
        (tmp_path / name).write_bytes(pickle.dumps(content))
    small = ['--images', '32', '--epochs', '1', '--more-epochs', '1', '--size', '8', '--seeds', '1']
    return ['--data', str(tmp_path), '--out', str(tmp_path / 'out.json'), *small]


def test_it_runs_goes_on_and_tells(benchmark, arguments, monkeypatch, capsys):
    real, done = benchmark.show, []
    monkeypatch.setattr(benchmark, 'KINDS', benchmark.KINDS[:3])

    def interrupted(kind, *rest):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(kind)
        return real(kind, *rest)

    monkeypatch.setattr(benchmark, 'show', interrupted)
    with pytest.raises(KeyboardInterrupt):
        benchmark.main(arguments)
    done.clear()
    benchmark.main(arguments)
    assert done == [benchmark.Kind(16, 2)]  # the others were done already
    content = json.loads(Path(arguments[3]).read_text())
    assert set(content['runs']) == {f'{kind}; seed 0' for kind in benchmark.KINDS}
    assert all(0 <= run['old_added'] <= 100 for run in content['runs'].values())
    assert '| EBV d = 16, reserve |' in capsys.readouterr().out
    with pytest.raises(SystemExit, match='made with other settings'):
        benchmark.main([*arguments, '--epochs', '2'])


def test_old_vectors_stay_when_classes_come(benchmark):
    x = torch.randn(50, benchmark.FEATURES)
    for kind in benchmark.KINDS:
        before = benchmark.classifier(kind).eval()
        for raw in (False, True):
            after = benchmark.extended(before, raw=raw).eval()
            torch.testing.assert_close(after(x)[:, :8], before(x), rtol=1e-5, atol=1e-5)
            assert after(x).shape == (50, 10) and (after(x)[:, 8:] == 0).all() == (not raw and not kind.reserve)
