"""Finding one's way in a config: its dicts, wherever they stand in it, and their types."""

from typing import Callable, Iterator, List


def nodes(config: object, path: str = '') -> Iterator[tuple]:
    """Every dict in nested dicts and lists, with its path."""
    if isinstance(config, dict):
        yield path, config
        children = config.items()
    elif isinstance(config, (list, tuple)):
        children = enumerate(config)
    else:
        return
    for key, child in children:
        yield from nodes(child, f'{path}.{key}' if path else str(key))


def count_nodes(config: object, test: Callable[[dict], bool]) -> int:
    """How many of a config's dicts pass a test."""
    return sum(bool(test(node)) for _, node in nodes(config))


def type_name(node: dict) -> str:
    """The type of a node without its scope: a name, also where a pure Python config has the class itself."""
    kind = node.get('type', '')
    return (kind if isinstance(kind, str) else getattr(kind, '__name__', '')).rpartition('.')[2]


def imports_with_ours(cfg: dict) -> List[str]:
    """What a config's ``custom_imports`` import, ours among them."""
    own = (cfg.get('custom_imports') or {}).get('imports', [])
    own = [own] if isinstance(own, str) else list(own)
    return own if 'ebv_mm' in own else [*own, 'ebv_mm']
