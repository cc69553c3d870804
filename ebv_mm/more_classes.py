"""More classes for a trained model: vectors that were reserved for them, or new ones."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Tuple

import torch
from mmengine.config import Config
from torch import Tensor

from .basis import DenseBasis, save_basis
from .config_nodes import nodes, type_name
from .launch.configs import ConfigError

# The classifier of each of our heads that can have more classes, and why others cannot.
CLASSIFIERS = {'EBVClsHead': 'fc', 'EBVDecodeHead': 'conv_seg'}
REFUSED = {
    'EBVBBoxHead': "a box head's last vector is the background's, so that a class behind it would take its number",
    'EBVMaskHead': 'a mask head has the classes of its box head, whose last vector is the background',
}
# Where classifiers and segmentors have their heads; what stands elsewhere may count a background.
PLACES = ('head', 'decode_head', 'auxiliary_head')


@dataclass
class Change:
    """What became of one head.

    Args:
        head: Its path in the model.
        before, after: Its number of classes.
        reserve: How many vectors are still reserved.
        made: How many vectors are new to the model, each in a dimension of its own; 0 where the reserve had enough.
    """

    head: str
    before: int
    after: int
    reserve: int
    made: int

    def __str__(self) -> str:
        text = f'{self.head}: {self.before} -> {self.after} classes, {self.reserve} still reserved'
        if not self.made:
            return f'{text}; every vector was there in training, and no weight changes'
        return (
            f'{text}; {self.made} vectors are new, each in a dimension of its own: the logits of the old classes stay, '
            'those of the new ones begin at 0'
        )

    @property
    def sizes(self) -> Dict[int, int]:
        """What becomes of a number that counts the classes, or the classes and the reserve."""
        outputs = self.after + self.reserve
        return {self.before: self.after, outputs - self.made: outputs}


def add_classes(cfg: Config, state: Dict[str, Tensor], count: int, folder: Path) -> List[Change]:
    """Give every EBV head of a model ``count`` more classes, in its config and in its weights, both in place.

    Reserved vectors are taken first, which changes no weight: the model has learned to keep away from them. What they
    do not suffice for is added by :func:`widened_basis`, as a file in ``folder``.
    """
    heads = [(path, head) for path, head in nodes(cfg.model) if 'basis' in head]
    if not heads:
        raise ConfigError('the model has no EBV head, so there are no vectors to add; give the config of one that has')
    changes = [_extend(path, head, state, count, folder) for path, head in heads]
    for path in _follow(cfg, changes, [head for _, head in heads]):
        warnings.warn(f'{path} has no EBV layer: its classifier begins anew, with the new classes', stacklevel=2)
    return changes


def widened_basis(vectors: Tensor, count: int) -> Tensor:
    """The vectors (N, d), and K more that have each a dimension of their own: (N + K, d + K).

    With a projection of :func:`zero_rows` in these dimensions the logits of the old classes stay what they were, and
    those of the new ones begin at 0, as with FC. A new vector within the old dimensions might win at once instead:
    nothing has held the embedding back along it in training.
    """
    return torch.block_diag(vectors, torch.eye(count).to(vectors))


def zero_rows(tensor: Tensor, count: int) -> Tensor:
    """A weight (d, ...) or bias (d,) with K rows of zeros more."""
    return torch.cat([tensor, tensor.new_zeros(count, *tensor.shape[1:])])


def _extend(path: str, head: dict, state: Dict[str, Tensor], count: int, folder: Path) -> Change:
    owner, layer = _classifier(path, head)
    before, reserve = owner['num_classes'], head.get('reserve', 0)
    change = Change(path, before, before + count, max(0, reserve - count), max(0, count - reserve))
    structured = f'{layer}.basis_recipe' in state
    if change.made or not structured:
        _check_basis(f'{layer}.basis', state, path, before, reserve)
    if change.made:
        if f'{layer}.norm.running_mean' in state:
            raise ConfigError(
                f'model.{path} has a norm of its embedding, which would divide a dimension of zeros by its deviation; '
                'train it anew, with a reserve'
            )
        basis = DenseBasis(widened_basis(state[f'{layer}.basis'].float(), change.made))
        head['basis'] = str(folder / f'{basis.num_classes}x{basis.dim}_{path}.safetensors')
        save_basis(basis, head['basis'])
        state[f'{layer}.basis'] = basis.vectors
        for key in (f'{layer}.weight', f'{layer}.bias'):
            if key in state:
                state[key] = zero_rows(state[key], change.made)
    owner['num_classes'] = change.after
    if 'reserve' in head:
        head['reserve'] = change.reserve
    return change


def _classifier(path: str, head: dict) -> Tuple[dict, str]:
    """The part of a head's config that has its number of classes, and where its classifier is in a checkpoint."""
    name = type_name(head)
    owner, layer = head, CLASSIFIERS.get(name)
    if name == 'EBVHead' and path.partition('.')[0] in PLACES:
        owner, layer = head['head'] if isinstance(head['head'], dict) else head, head['layer']
    if not isinstance(layer, str) or not {'*', '-'}.isdisjoint(layer) or 'num_classes' not in owner:
        reason = REFUSED.get(name, f'{name} does not tell its number of classes and its one classifier')
        raise ConfigError(f'model.{path} cannot have more classes: {reason}; train it anew with all classes')
    return owner, f'{path}.{layer}'


def _check_basis(key: str, state: Dict[str, Tensor], path: str, classes: int, reserve: int) -> None:
    if key not in state or state[key].ndim != 2:
        raise ConfigError(
            f'the checkpoint has no matrix {key!r}: it is no EBV checkpoint, or its basis is structured, which is not '
            'extended; give another, or reserve vectors when a structured basis is first trained'
        )
    if len(state[key]) != classes + reserve:
        raise ConfigError(
            f'{key!r} has {len(state[key])} vectors, but model.{path} has {classes} classes and {reserve} reserved; '
            'give the config that it was trained with'
        )


def _follow(cfg: Config, changes: List[Change], heads: List[dict]) -> List[str]:
    """What else in a config has a number for each class: mixup's, FC heads beside ours, and weights of the loss.

    Returns the paths of the FC heads, whose classifiers begin anew.
    """
    sizes = {before: after for change in changes for before, after in change.sizes.items()}
    anew = []
    for path, node in (*nodes(cfg.model), *nodes(cfg.get('data_preprocessor'))):
        ours = any(node is head or node is head.get('head') for head in heads)
        if not ours and node.get('num_classes') in sizes:
            node['num_classes'] = sizes[node['num_classes']]
            if type_name(node).endswith('Head'):
                anew.append(path)
        weights = node.get('class_weight')
        if isinstance(weights, (list, tuple)) and len(weights) in sizes:
            node['class_weight'] = [*weights, *[1.0] * (sizes[len(weights)] - len(weights))]
    return anew
