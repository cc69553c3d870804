"""The basis files that a config names."""

from typing import List


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
