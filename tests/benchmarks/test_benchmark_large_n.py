"""benchmarks/large_n.py runs, tells times and memory of both sides, and writes what it keeps into a page."""

import json
import math
import os

import large_n
import pytest
from pages import END


def test_no_repeats_are_refused():
    with pytest.raises(SystemExit):
        large_n.main(['--repeats', '0'])


@pytest.mark.skipif(not os.access('/proc/self/clear_refs', os.W_OK), reason='no peak memory can be measured here')
def test_a_quick_run(capsys):
    assert large_n.main(['--quick', '--repeats', '1', '--only', 'growth', 'prediction', 'server']) == 0
    out = capsys.readouterr().out
    assert 'torch ' in out and 'extra memory' in out and '100.0%' in out and 'checkpoint to first answer' in out


@pytest.mark.slow
def test_a_quick_run_of_all(capsys):
    assert large_n.main(['--quick', '--repeats', '1']) == 0
    assert all(name in capsys.readouterr().out for name in ['other busy processes', 'gradients a step'])


@pytest.mark.parametrize('name', [name for name in large_n.CASES if name != 'resnet50'])  # which is slow
def test_both_sides_of_each_case_have_the_loss_of_random_embeddings(name):
    num_classes, *_ = large_n.CASES[name].quick
    for ours in (False, True):
        among = num_classes / 10 if name == 'sampled' and not ours else num_classes
        # of random embeddings: that of guessing, and what the spread of the logits adds
        assert float(large_n.build(name, True, ours)()) == pytest.approx(math.log(among), abs=1.5)


def test_tables_are_kept_and_written_between_their_markers(tmp_path, monkeypatch):
    monkeypatch.setattr(large_n, 'RESULTS', tmp_path / 'results' / 'large_n.json')
    monkeypatch.setattr(large_n, 'PICTURE', tmp_path / 'growth.png')
    rows = [
        {'N': '1,000', 'time': '2.0 ms', 'extra memory': '3 MB'},
        {'N': '10', 'time': '1 ms', 'extra memory': '1 MB'},
    ]
    large_n.keep('growth', dict(machine='a machine', repeats=3, rows=rows))
    large_n.keep('loss', dict(machine='a machine', repeats=3, rows=rows))
    assert list(json.loads(large_n.RESULTS.read_text())) == ['growth', 'loss']
    page = tmp_path / 'page.md'
    page.write_text('before\n' + large_n.MARKER.format('growth') + '\nold\n' + END + '\nafter\n')
    with pytest.raises(ValueError, match='no line .*costs of loss'):
        large_n.main(['--docs', str(page)])
    page.write_text(page.read_text() + large_n.MARKER.format('loss') + '\n' + END + '\n')
    for _ in range(2):  # the second time changes nothing
        assert large_n.main(['--docs', str(page)]) == 0
    text = page.read_text()
    assert text.count('| 1,000 | 2.0 ms | 3 MB |') == 2 and 'old' not in text
    assert text.startswith('before\n') and 'after\n' in text and large_n.PICTURE.stat().st_size > 1000
