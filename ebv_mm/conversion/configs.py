"""A config of a host becomes one with EBV heads: in memory, and as the short file that a person would have written."""

import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Union

from mmengine.config import Config
from yapf.yapflib.yapf_api import FormatCode

from ..basis import best_bound, closed_forms
from ..config_nodes import imports_with_ours
from .classifiers import Classifier, ConversionError, Found, find_classifiers

# From so many vectors on, a matrix of d = N takes more memory than most models.
LARGE = 4096
# A closed form within this factor of the bound is taken as it is; a solver comes no nearer in minutes.
NEAR_BOUND = 1.05
STYLE = dict(based_on_style='pep8', column_limit=100, dedent_closing_brackets=True, coalesce_brackets=True)


@dataclass
class Conversion:
    """What becomes of a config.

    Args:
        found: Its classifiers, and what is left alone.
        changes: For each classifier what its config gets, basis included.
        sizes: The (N, d) of the basis of each.
        files: Basis files that have to be made, with their (N, d).
    """

    found: Found
    changes: List[dict]
    sizes: List[tuple]
    files: Dict[str, tuple]


def plan(
    cfg: Config, *, dim: Optional[int] = None, tau: Optional[float] = None, folder: Union[str, Path] = 'data/ebv'
) -> Conversion:
    """Decide what every classifier of a config becomes.

    Args:
        dim: d of every basis; N if it is None.
        tau: Temperature of every classifier that has one; the default of the layers if it is None.
        folder: Where the basis files are to be that no closed form replaces.
    """
    if dim is not None and dim < 2:
        raise ConversionError(f'dim = {dim}, but every embedding would be +1 or -1; take at least 2')
    found = find_classifiers(cfg)
    changes, sizes, files = [], [], {}
    for classifier in found.classifiers:
        num_vectors = basis_size(classifier, found.classifiers, dim)
        d = num_vectors if dim is None else dim
        if classifier.place.square and d != classifier.num_vectors:
            raise ConversionError(
                f'{classifier.name}: dim = {d}, but its detector takes the outputs of the layer for the classes, '
                f'of which there are {classifier.num_vectors}; leave out the dim'
            )
        basis = basis_argument(num_vectors, d, folder)
        if isinstance(basis, str):
            files[basis] = (num_vectors, d)
        temperature = {} if tau is None or classifier.place.scores == 'cosine' else dict(tau=tau)
        changes.append({**classifier.changes, 'basis': basis, **temperature})
        sizes.append((num_vectors, d))
    return Conversion(found, changes, sizes, files)


def basis_size(classifier: Classifier, classifiers: List[Classifier], dim: Optional[int]) -> int:
    """N of the basis.

    Masks share that of their boxes, which has one vector more. So do sigmoids: what has no class begins, and may
    stay, in the direction of the vector that no class has.
    """
    boxes = [other.num_vectors for other in classifiers if other.place.background == 1 and 'bbox_head' in other.path]
    shared = classifier.place.scores == 'signs' and classifier.num_vectors + 1 in boxes
    spare = classifier.sigmoid and not classifier.place.square and (dim is None or dim > classifier.num_vectors)
    return classifier.num_vectors + (shared or spare)


def basis_argument(num_vectors: int, dim: int, folder: Union[str, Path]) -> Union[str, dict]:
    """A closed form where there is a good one, otherwise the path of a file."""
    if num_vectors <= dim:
        structured = dict(structured=True) if num_vectors > LARGE else {}
        return dict(num_classes=num_vectors, dim=dim, **structured)
    offers = closed_forms(num_vectors, dim)
    if offers and offers[0].coherence <= NEAR_BOUND * best_bound(num_vectors, dim):
        return dict(num_classes=num_vectors, dim=dim)
    return (Path(folder) / f'{num_vectors}x{dim}.safetensors').as_posix()


def to_ebv(
    cfg: Union[str, Path, Config],
    *,
    dim: Optional[int] = None,
    tau: Optional[float] = None,
    folder: Union[str, Path] = 'data/ebv',
) -> Config:
    """A copy of a host's config in which every classifier has fixed class vectors.

    Args:
        cfg: A config, its path, or its address in a host such as ``'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'``.
        dim, tau, folder: As in :func:`plan`.
    """
    cfg = deepcopy(cfg) if isinstance(cfg, Config) else read_config(cfg)
    return converted(cfg, plan(cfg, dim=dim, tau=tau, folder=folder))


def converted(cfg: Config, conversion: Conversion) -> Config:
    """The config with the changes in it."""
    cfg = deepcopy(cfg)
    for classifier, changes in zip(conversion.found.classifiers, conversion.changes):
        node = cfg.model
        for key in classifier.path:
            node = node[key]
        node.update(deepcopy(changes))
    cfg.custom_imports = dict(imports=imports_with_ours(cfg), allow_failed_imports=False)
    return cfg


def read_config(source: Union[str, Path]) -> Config:
    """A config file or address; one sentence where it cannot be read."""
    source = str(source)
    if '::' in source:
        from mmengine.hub import get_config

        read, wrong = get_config, 'name one that its host has'
    else:
        read, wrong = Config.fromfile, 'give the path of a config that its host can read'
        if not Path(source).is_file():
            raise ConversionError(f'config {source!r} does not exist; give a path, or an address such as mmdet::...')
    try:
        return read(source)
    except Exception as error:
        raise ConversionError(f'config {source!r} cannot be read ({_first_line(error)}); {wrong}') from error


def delta(cfg: Config, source: Union[str, Path], conversion: Conversion, folder: Path, load_from: Optional[str]) -> str:
    """The text of a config that inherits ``source`` and replaces its classifiers."""
    base = str(source) if '::' in str(source) else Path(os.path.relpath(source, folder)).as_posix()
    bases = {repr(changes['basis']): changes['basis'] for changes in conversion.changes}
    names = {key: 'basis' if len(bases) == 1 else f'basis_{conversion_size(value)}' for key, value in bases.items()}
    lines = [
        f'_base_ = {base!r}',
        f'custom_imports = dict(imports={imports_with_ours(cfg)!r}, allow_failed_imports=False)',
        '',
    ]
    lines += [f'{names[key]} = {_text(value)}' for key, value in bases.items()]
    tree: dict = {}
    for classifier, changes in zip(conversion.found.classifiers, conversion.changes):
        node = tree
        for key in classifier.path[:-1]:
            node = node.setdefault(key, {})
        named = {**changes, 'basis': _Code(names[repr(changes['basis'])])}
        node[classifier.path[-1]] = named
    lines.append(f'model = {_text(_with_lists(tree, cfg.model, "_base_.model"))}')
    if load_from is not None:
        lines.append(f'load_from = {load_from!r}')
    return FormatCode('\n'.join(lines) + '\n', style_config=STYLE)[0]


def conversion_size(basis: Union[str, dict]) -> str:
    return Path(basis).stem if isinstance(basis, str) else f'{basis["num_classes"]}x{basis["dim"]}'


class _Code(str):
    """Text that is written as it is."""

    __repr__ = str.__str__


def _with_lists(tree: dict, base: object, name: str) -> object:
    """Lists are replaced as a whole by mmengine: write them as what the base has, with changes."""
    if not isinstance(base, (list, tuple)):
        return {key: _with_lists(value, base[key], f'{name}.{key}') if _is_node(value, base, key) else value
                for key, value in tree.items()}  # fmt: skip
    if any('type' not in value for value in tree.values()):
        raise ConversionError(f'{name} is a list with heads deeper inside; write the EBV heads by hand')
    first = _text(tree[min(tree)])
    if len(tree) == len(base) and all(_text(value) == first for value in tree.values()):
        return _Code(f'[dict(head, {first[len("dict(") :-1]}) for head in {name}]')
    parts = [
        f'dict({name}[{index}], {_text(tree[index])[len("dict(") :-1]})' if index in tree else f'{name}[{index}]'
        for index in range(len(base))
    ]
    return _Code('[' + ', '.join(parts) + ']')


def _is_node(value: object, base: object, key: str) -> bool:
    return isinstance(value, dict) and 'basis' not in value and isinstance(base.get(key), (dict, list, tuple))


def _text(value: object) -> str:
    if isinstance(value, dict) and all(isinstance(key, str) and key.isidentifier() for key in value):
        return 'dict(' + ', '.join(f'{key}={_text(item)}' for key, item in value.items()) + ')'
    if isinstance(value, dict):
        return '{' + ', '.join(f'{key!r}: {_text(item)}' for key, item in value.items()) + '}'
    return repr(value)


def _first_line(error: Exception) -> str:
    return str(error).strip().split('\n')[0][:200] or type(error).__name__
