"""The two stacks, and the environment of one: where it is, what belongs into it, and how to run a command in it."""

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# The first and the last Python, the distribution of mmcv, and where its project publishes wheels of it.
Stack = namedtuple('Stack', 'pythons mmcv prebuilt')
STACKS = {
    'classic': Stack(
        ((3, 10), (3, 11)), 'mmcv', 'https://download.openmmlab.com/mmcv/dist/cu121/torch2.1.0/index.html'
    ),
    'modern': Stack(((3, 11), (3, 14)), 'onedl-mmcv', 'https://mmwheels.onedl.ai/simple/cu130-torch2120/onedl-mmcv/'),
}
# What would lead pip elsewhere. Without bytecode every later process would compile the hosts anew.
ELSEWHERE = ('PYTHONPATH', 'PYTHONHOME', 'PYTHONDONTWRITEBYTECODE', 'PIP_TARGET', 'PIP_PREFIX', 'PIP_ROOT')


class SetupError(Exception):
    """What stops the set-up, as one sentence: value, requirement, remedy."""


class FailedError(Exception):
    """A command that ended with an error, which it has printed itself."""


def dotted(version):
    return '.'.join(map(str, version))


def say(text):
    print(f'--- {text}', flush=True)


class Environment:
    def __init__(self, name, root=ROOT):
        self.name, self.stack, self.root = name, STACKS[name], root
        self.folder = root / f'.venv-{name}'
        self.python = self.folder / 'bin' / 'python'
        self.stamp = self.folder / 'setup.stamp'
        self.requirements = root / 'requirements' / f'{name}.txt'

    @property
    def scratch(self):
        """A folder for what set-up needs only while it runs; /tmp is often too small for the downloads."""
        folder = self.folder / 'tmp'
        folder.mkdir(exist_ok=True)
        return folder

    def pins(self):
        """Return what the requirement file pins, by the distribution's name."""
        lines = self.requirements.read_text(encoding='utf-8').splitlines()
        return {line.split('==')[0]: line.split(' #')[0].strip() for line in lines if re.match(r'[\w.-]+==', line)}

    def pin(self, name):
        return self.pins()[name]

    def stamp_text(self):
        """Return what the stamp of a finished environment says: it changes when set-up has something to do."""
        digest = hashlib.sha256()
        for file in (self.requirements, self.root / 'setup.py'):
            digest.update(file.read_bytes())
        # A moved clone has to be set up again: activate scripts and the editable install hold its path.
        return f'{digest.hexdigest()} python{dotted(sys.version_info[:2])} {self.folder}\n'

    def is_finished(self):
        """Tell whether there is nothing to do; false as well where the Python behind the environment has gone."""
        return self.python.exists() and self.stamp.exists() and self.stamp.read_text() == self.stamp_text()

    def finish(self, stamp):
        shutil.rmtree(str(self.scratch))
        self.stamp.write_text(stamp)
        say(f'{self.folder.name} is ready')

    def pip(self, *arguments):
        self.run(self.python, '-m', 'pip', *arguments)

    def run(self, *command, cwd=None, capture=False, path=(), **variables):
        """Run a command, which prints its own progress, with `path` in front; return its output if asked for."""
        environ = {key: value for key, value in os.environ.items() if key not in ELSEWHERE}
        environ.update(
            PATH=os.pathsep.join(map(str, [*path, self.folder / 'bin', environ.get('PATH', os.defpath)])),
            VIRTUAL_ENV=str(self.folder),
            TMPDIR=str(self.scratch),
            PIP_USER='0',
            PIP_NO_INPUT='1',
            PIP_DISABLE_PIP_VERSION_CHECK='1',
            **variables,
        )
        child = subprocess.Popen(
            [str(word) for word in command],
            cwd=str(cwd or self.root),
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if capture else None,
            universal_newlines=True,
            start_new_session=True,  # so that its children can be stopped with it
        )
        try:
            output, _ = child.communicate()
        except BaseException:
            stop(child)
            raise
        if child.returncode:
            raise FailedError(command)
        return output

    @contextlib.contextmanager
    def step(self, what, remedy=''):
        """Announce a step, and say in one sentence what to do should a command of it fail."""
        say(what)
        try:
            yield
        except FailedError:
            free = shutil.disk_usage(str(self.root)).free
            if free < 0.5e9:
                remedy = f'only {free / 1e9:.1f} GB are free under {self.root}: free some space'
            remedy = remedy or f'mend what is said above (or begin anew: rm -rf {self.folder.name})'
            raise SetupError(f'{what} failed; {remedy}, and run the same command again') from None


def stop(child):
    """End a child and its children; ninja ends its compilers on SIGTERM."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, sig)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=10)
            return
