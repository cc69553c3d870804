"""The basis files that a config names."""

from typing import List

from mmengine.config import Config


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
    if isinstance(config, dict):
        own = [config['basis']] if isinstance(config.get('basis'), str) else []
        nested = [path for value in config.values() for path in basis_paths(value)]
    elif isinstance(config, (list, tuple)):
        own, nested = [], [path for value in config for path in basis_paths(value)]
    else:
        return []
    return list(dict.fromkeys(own + nested))
