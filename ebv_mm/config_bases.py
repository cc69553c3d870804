"""The basis files that a config names."""

from typing import List

from mmengine.config import Config

from .config_nodes import nodes


def read_config(file: str) -> dict:
    """A config as plain dicts; whatever is wrong with it is a ValueError, an OSError or an ImportError."""
    try:
        return Config.fromfile(file, import_custom_modules=False).to_dict()
    except (OSError, ImportError):
        raise
    except Exception as error:  # a config is a program
        raise ValueError(f'config {file!r} cannot be read ({type(error).__name__}: {error}); mend it') from error


def basis_paths(config: object) -> List[str]:
    """The basis files that a config, nested dicts and lists, names: each string under a key ``basis``, once."""
    named = (node.get('basis') for _, node in nodes(config))
    return list(dict.fromkeys(path for path in named if isinstance(path, str)))
