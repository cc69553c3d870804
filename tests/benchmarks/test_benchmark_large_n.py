"""benchmarks/large_n.py runs, and tells times and memory of both sides."""

import math
import os
import re

import large_n
import pytest


def test_no_repeats_are_refused():
    with pytest.raises(SystemExit):
        large_n.main(['--repeats', '0'])


@pytest.mark.skipif(not os.access('/proc/self/clear_refs', os.W_OK), reason='no peak memory can be measured here')
def test_a_quick_run(capsys, tmp_path):
    picture = tmp_path / 'growth.png'
    arguments = ['--quick', '--repeats', '1', '--only', 'kerdock', 'unit', 'growth', '--plot', str(picture)]
    assert large_n.main(arguments) == 0
    _, heading, *rows, wrote = capsys.readouterr().out.splitlines()
    assert 'smaller' in heading and wrote == f'wrote {picture}' and picture.stat().st_size > 10_000
    assert len(rows) == 2 + len(large_n.QUICK_GROWTH)
    for row in rows[:2]:
        baseline, ours, faster = map(float, re.search(r'([\d.]+) ms +([\d.]+) ms +([\d.]+)x', row).groups())
        # the times are rounded to a tenth of a millisecond, and their ratio to a hundredth
        rounding = (0.05 / baseline + 0.05 / ours) * baseline / ours + 0.005
        assert faster == pytest.approx(baseline / ours, abs=1.1 * rounding)


@pytest.mark.parametrize('name', [name for name in large_n.CASES if name != 'resnet50'])  # which is slow
def test_both_sides_of_each_case_have_the_loss_of_random_embeddings(name):
    num_classes, *_ = large_n.CASES[name][2]
    for ours in (False, True):
        # of random embeddings: that of guessing, and what the spread of the logits adds
        assert float(large_n.build(name, True, ours)()) == pytest.approx(math.log(num_classes), abs=1.5)
