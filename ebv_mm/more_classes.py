"""More classes for a trained model: vectors that were reserved for them, or new ones."""

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional

from mmengine.config import Config
from torch import Tensor

from .basis import DenseBasis, extend_basis, save_basis
from .launch.configs import ConfigError, nodes, type_name

# The classifier of each of our heads that can have more classes, and why others cannot.
CLASSIFIERS = {'EBVClsHead': 'fc', 'EBVDecodeHead': 'conv_seg'}
REFUSED = {
    'EBVBBoxHead': "a box head's last vector is the background's, so that a class behind it would take its number",
    'EBVMaskHead': 'a mask head has the classes of its box head, whose last vector is the background',
}


@dataclass
class Change:
    """What became of one head.

    Args:
        head: Its path in the model.
        before, after: Its number of classes.
        reserve: How many vectors are still reserved.
        made: How many vectors are new to the model; 0 where the reserve had enough.
        angle: Smallest angle between the vectors now, in degrees; None where none was made.
    """

    head: str
    before: int
    after: int
    reserve: int
    made: int = 0
    angle: Optional[float] = None

    def __str__(self) -> str:
        text = f'{self.head}: {self.before} -> {self.after} classes, {self.reserve} still reserved'
        if not self.made:
            return f'{text}; every vector was there in training, and no weight changes'
        return (
            f'{text}; {self.made} vectors are new, min angle {self.angle:.2f}: until it is trained on, the model takes '
            'images of old classes for new ones'
        )


def add_classes(cfg: Config, state: Dict[str, Tensor], count: int, folder: Path) -> List[Change]:
    """Give every EBV head of a model ``count`` more classes, in its config and in its weights, both in place.

    Reserved vectors are taken first, which changes no weight: the model has learned to keep away from them. What they
    do not suffice for is added by :func:`~ebv_mm.basis.extend_basis`, as a file in ``folder``.
    """
    changes = []
    for path, head in nodes(cfg.model):
        name = type_name(head)
        if 'basis' not in head:
            continue
        if name not in CLASSIFIERS:
            reason = REFUSED.get(name, f'{name} does not tell its number of classes')
            raise ConfigError(f'model.{path} cannot have more classes: {reason}; train it anew with all classes')
        changes.append(_extend(head, path, f'{path}.{CLASSIFIERS[name]}.basis', state, count, folder))
    if not changes:
        raise ConfigError('the model has no EBV head, so there are no vectors to add; give the config of one that has')
    _follow(cfg, count, changes)
    return changes


def _extend(head: dict, path: str, key: str, state: Dict[str, Tensor], count: int, folder: Path) -> Change:
    before, reserve = head['num_classes'], head.get('reserve', 0)
    made = max(0, count - reserve)
    if made == 0 and f'{key}_recipe' in state:
        return _renumbered(head, Change(path, before, before + count, reserve - count))
    if key not in state or state[key].ndim != 2:
        raise ConfigError(
            f'the checkpoint has no matrix {key!r}: it is no EBV checkpoint, or its basis is structured, which is not '
            'extended; give another, or reserve vectors when a structured basis is first trained'
        )
    stored = state[key]
    if len(stored) != before + reserve:
        raise ConfigError(
            f'{key!r} has {len(stored)} vectors, but model.{path} has {before} classes and {reserve} reserved; give '
            'the config that it was trained with'
        )
    change = Change(path, before, before + count, max(0, reserve - count), made)
    if made:
        longer = extend_basis(DenseBasis(stored.float()), made).basis
        file = folder / f'{longer.num_classes}x{longer.dim}.safetensors'
        save_basis(longer, file)
        state[key] = longer.vectors
        head['basis'] = str(file)
        change.angle = longer.min_angle
    return _renumbered(head, change)


def _renumbered(head: dict, change: Change) -> Change:
    head['num_classes'] = change.after
    if 'reserve' in head:
        head['reserve'] = change.reserve
    return change


def _follow(cfg: Config, count: int, changes: List[Change]) -> None:
    """What else in a config has a number for each class: mixup's, and weights of the loss."""
    sizes = {change.before: change.after for change in changes}
    for preprocessor in (cfg.get('data_preprocessor'), cfg.model.get('data_preprocessor')):
        # with a reserve it has the sum, which stays
        if preprocessor and preprocessor.get('num_classes') in sizes:
            preprocessor['num_classes'] = sizes[preprocessor['num_classes']]
    for _, node in nodes(cfg.model):
        weights = node.get('class_weight')
        if isinstance(weights, (list, tuple)) and len(weights) in sizes:
            node['class_weight'] = [*weights, *[1.0] * count]
