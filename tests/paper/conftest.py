import importlib.util
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]


def load_tool(name: str):
    spec = importlib.util.spec_from_file_location(name, REPO / 'tools' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='session')
def reproduce():
    """The tool, in this process."""
    return load_tool('reproduce').main


@pytest.fixture(scope='session')
def list_images():
    return load_tool('list_images').main
