"""More classes for a trained model: vectors that were reserved for them, or new ones."""

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import torch
from mmengine.config import Config
from torch import Tensor

from .basis import DenseBasis, extend_basis, save_basis
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
        return f'{text}; {self.made} vectors are new, min angle {self.angle:.2f}, and the projection is cleared of them'

    @property
    def sizes(self) -> Dict[int, int]:
        """What becomes of a number that counts the classes, or the classes and the reserve."""
        outputs = self.after + self.reserve
        return {self.before: self.after, outputs - self.made: outputs}


def add_classes(cfg: Config, state: Dict[str, Tensor], count: int, folder: Path) -> List[Change]:
    """Give every EBV head of a model ``count`` more classes, in its config and in its weights, both in place.

    Reserved vectors are taken first, which changes no weight: the model has learned to keep away from them. What they
    do not suffice for is added by :func:`~ebv_mm.basis.extend_basis`, as a file in ``folder``, and :func:`clear` makes
    room for it in the projection.
    """
    heads = [(path, head) for path, head in nodes(cfg.model) if 'basis' in head]
    if not heads:
        raise ConfigError('the model has no EBV head, so there are no vectors to add; give the config of one that has')
    changes = [_extend(path, head, state, count, folder) for path, head in heads]
    _follow(cfg, changes, [head for _, head in heads])
    return changes


@torch.no_grad()
def clear(weight: Tensor, bias: Optional[Tensor], vectors: Tensor) -> None:
    r"""Take the directions of some class vectors out of a projection, in place: :math:`A \leftarrow (I - P) A`.

    P is the orthogonal projection onto their span; the bias likewise. These classes begin with logits of 0 then, as new
    rows of zeros do in FC. Classes that are orthogonal to them keep their products with v, hence their order. Others
    lose what v had along the new vectors, times their cosine with them.

    Without it a vector that no training has seen may win at once: nothing has held v back along it.

    Args:
        weight: (d, ...), of the projection.
        bias: (d,), or None.
        vectors: (K, d).
    """
    span = torch.linalg.qr(vectors.T.double())[0]
    for tensor in filter(torch.is_tensor, (weight, bias)):
        columns = tensor.double().reshape(len(tensor), -1)
        tensor.copy_((columns - span @ (span.T @ columns)).view(tensor.shape))


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
                f'model.{path} has a norm of its embedding, through which no projection can be cleared of a new '
                'vector; train it anew, with a reserve'
            )
        longer = extend_basis(DenseBasis(state[f'{layer}.basis'].float()), change.made).basis
        clear(state[f'{layer}.weight'], state.get(f'{layer}.bias'), longer.vectors[-change.made :])
        file = folder / f'{longer.num_classes}x{longer.dim}_{path}.safetensors'
        save_basis(longer, file)
        state[f'{layer}.basis'], head['basis'], change.angle = longer.vectors, str(file), longer.min_angle
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


def _follow(cfg: Config, changes: List[Change], heads: List[dict]) -> None:
    """What else in a config has a number for each class: mixup's, FC heads beside ours, and weights of the loss."""
    sizes = {before: after for change in changes for before, after in change.sizes.items()}
    for _, node in (*nodes(cfg.model), *nodes(cfg.get('data_preprocessor'))):
        ours = any(node is head or node is head.get('head') for head in heads)
        if not ours and node.get('num_classes') in sizes:
            node['num_classes'] = sizes[node['num_classes']]
        weights = node.get('class_weight')
        if isinstance(weights, (list, tuple)) and len(weights) in sizes:
            node['class_weight'] = [*weights, *[1.0] * (sizes[len(weights)] - len(weights))]
