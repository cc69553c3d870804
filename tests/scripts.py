"""Scripts of the repository as modules, so that a test calls their functions in its own process."""

import importlib.util
from pathlib import Path
from types import ModuleType

REPO = Path(__file__).parents[1]


def load_script(path: str) -> ModuleType:
    """The script at a path in the repository, such as ``'tools/export.py'``."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, REPO / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
