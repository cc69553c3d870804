"""How a command line is carried out: as a process of its own, or as a fork that has the hosts imported already."""

import fcntl
import os
import re
import runpy
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator, Sequence, TextIO

LAST_LINES = 15
PATTERN = re.compile(r'[\w/.*-]+')  # of a file that does not exist yet; the shell will know it
PATIENCE_SECONDS = 60


class CommandError(RuntimeError):
    """A command has ended badly; the message ends with what it printed last."""


def shown(command: Sequence[str]) -> str:
    """A command as a user would type it in an active environment."""
    words = ['python' if command[0] == sys.executable else command[0], *command[1:]]
    return ' '.join(word if PATTERN.fullmatch(word) else shlex.quote(word) for word in words)


@contextmanager
def locked_log(log: Path) -> Iterator[TextIO]:
    """A log to append to. It is locked as long as anybody, also a child that was left behind, writes to it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open('a') as output:
        try:
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(f'another process writes {log}; wait for it, then give the same command') from None
        yield output


def run_process(command: Sequence[str], output: TextIO) -> int:
    """Run a command to its end, or until this process is interrupted, which ends it too; returns the exit code."""
    environment = dict(os.environ, PYTHON=sys.executable, PORT=os.environ.get('PORT') or str(_free_port()))
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,  # so that a launcher's children can be ended with it
    )
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise


def run_fork(command: Sequence[str], output: TextIO) -> int:
    """Run a Python tool in a fork: nothing is imported again, nothing stays behind. For many short runs."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os._exit(_run_tool(command, output))
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(status)


def _run_tool(command: Sequence[str], output: TextIO) -> int:
    _, script, *arguments = command
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    # pytest and others put objects of their own here
    sys.stdout, sys.stderr = (os.fdopen(number, 'w', buffering=1, closefd=False) for number in (1, 2))
    sys.argv = [script, *arguments]
    try:
        runpy.run_path(script, run_name='__main__')
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def last_lines(log: Path) -> str:
    return '\n'.join(log.read_text(errors='replace').splitlines()[-LAST_LINES:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
