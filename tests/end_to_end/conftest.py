import os
import subprocess
import sys
from pathlib import Path

import pytest
from scenes import write_bases, write_scenes

REPO = Path(__file__).parents[2]
CONFIGS = Path(__file__).parent / 'configs'


@pytest.fixture
def project(tmp_path) -> Path:
    """A folder with data and bases, as a user's working directory."""
    write_scenes(tmp_path)
    write_bases(tmp_path)
    return tmp_path


@pytest.fixture
def run(project):
    """Run a tool in the project folder as a user would; return what it printed."""

    def call(tool: str, *args, expect: int = 0, port: int = 0) -> str:
        command = [sys.executable] if tool.endswith('.py') else []
        environment = dict(
            os.environ,
            PYTHON=sys.executable,
            PYTHONPATH=os.pathsep.join([str(REPO), str(CONFIGS)]),
            CUDA_VISIBLE_DEVICES='',
            OMP_NUM_THREADS='1',  # tiny tensors; threads would only wait for each other
            PORT=str(port),
        )
        done = subprocess.run(
            [*command, str(REPO / 'tools' / tool), *map(str, args)],
            cwd=project,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == expect, done.stdout
        return done.stdout

    return call
