import io
import signal

import pytest
from rich.console import Console

from ebv_mm.output import Progress, StopOnInterrupt, progress


class Clock:
    """A time that only passes when it is told to."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress.time, 'monotonic', clock.monotonic)
    return clock


def test_a_log_gets_the_first_line_the_last_and_some_between(clock, capsys):
    with Progress() as shown:
        for done in range(1, 11):
            shown.show('batches', done, 10, 'loss 0.5' if done == 1 else '')
            clock.now += 9
    assert capsys.readouterr().err.splitlines() == [
        'batches: 1/10, loss 0.5, 0 s',
        'batches: 4/10, 27 s, 54 s left',
        'batches: 7/10, 54 s, 27 s left',
        'batches: 10/10, 81 s',
    ]


def test_a_job_that_goes_on_after_its_last_count_is_told_of_once(clock, capsys):
    with Progress() as shown:
        for state in ('loss 0.5', 'testing', 'testing'):
            shown.show('a', 10, 10, state)
            clock.now += 1
        shown.show('a', 10, 10, 'ended', finished=True)
    assert capsys.readouterr().err.splitlines() == ['a: 10/10, loss 0.5, 0 s', 'a: 10/10, ended, 3 s']


def test_jobs_have_lines_of_their_own_and_may_be_of_unknown_length(clock, capsys):
    with Progress() as shown:
        shown.show('a', state='max |cos| 0.2')
        shown.show('b', state='starting')
        clock.now += 1
        shown.show('a', state='left out')
        shown.show('b', state='done', finished=True)
    assert capsys.readouterr().err.splitlines() == ['a: max |cos| 0.2, 0 s', 'b: starting, 0 s', 'b: done, 1 s']


def test_a_terminal_gets_live_lines():
    stream = io.StringIO()
    with Progress(Console(file=stream, force_terminal=True, width=100)) as shown:
        for done in range(4):
            shown.show('[model]', done, 3, 'loss 0.5')
        shown.show('solver', state='max |cos| 0.2')
    last = stream.getvalue().split('\r')[-1]
    assert '[model]' in last and '3/3, loss 0.5' in last and 'max |cos| 0.2' in last


def test_the_first_interrupt_asks_and_the_second_ends():
    before = signal.getsignal(signal.SIGINT)
    with StopOnInterrupt() as stop:
        assert not stop.asked
        signal.raise_signal(signal.SIGINT)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
