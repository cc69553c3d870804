"""Which classifiers a config has, and what each of them becomes."""

import inspect
from dataclasses import dataclass, field
from importlib import import_module
from typing import Dict, List, Optional, Tuple, Union

from mmengine.config import Config
from mmengine.registry import DefaultScope

from ..catalogue import OWN_TYPES, SIGMOID_LAYERS, Place, known
from ..compat import HOSTS, why_not_usable

# LinearClsHead as the projection of a language model, and teachers, whose weights are another checkpoint's.
LEFT_KEYS = {'text_neck': 'a projection, not a classifier', 'vision_neck': 'a projection, not a classifier',
             'teacher_bbox_head': "the teacher keeps its checkpoint's classifier"}  # fmt: skip
Path = Tuple[Union[str, int], ...]


class ConversionError(ValueError):
    """A config or checkpoint that cannot be converted; the message says why and what to do."""


@dataclass
class Classifier:
    """One head of a config whose classifier becomes an EBV layer.

    Args:
        path: Where its config stands in ``cfg.model``.
        head: Its type, as the config has it.
        place: Where its layers are.
        layers: Their paths in the head.
        num_vectors: N, background included.
        sigmoid: Whether its scores are sigmoids that need a prior.
        pairs: Whether its last two outputs have a softmax of their own, as Seesaw's objectness.
        changes: What the config of the head gets, basis and tau excepted.
    """

    path: Path
    head: Union[str, type]
    place: Place
    layers: Tuple[str, ...]
    num_vectors: int
    sigmoid: bool
    pairs: bool = False
    changes: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        return '.'.join(map(str, self.path))

    @property
    def softmax(self) -> bool:
        return not self.sigmoid and self.place.scores not in ('signs', 'cosine')


@dataclass
class Found:
    """What a config has: classifiers to convert, and what stays as it is, with the reason."""

    classifiers: List[Classifier] = field(default_factory=list)
    left: Dict[str, str] = field(default_factory=dict)
    refused: Dict[str, str] = field(default_factory=dict)


def find_classifiers(cfg: Config) -> Found:
    """Look through ``cfg.model`` without building it; raises :class:`ConversionError` where there is no way."""
    model = cfg.get('model')
    if not isinstance(model, dict) or 'type' not in model:
        raise ConversionError('the config has no model; give one that trains or tests a model')
    scope = cfg.get('default_scope') or _scope_of(model['type'])
    unusable = why_not_usable(scope) if scope in HOSTS else None
    if unusable:
        raise ConversionError(unusable)
    found = Found()
    with DefaultScope.overwrite_default_scope(scope):
        _walk(model, (), scope, found)
    if all(classifier.path[0] == 'auxiliary_head' for classifier in found.classifiers):
        reasons = {**found.refused, **found.left}
        why = '; '.join(f'{name}: {reason}' for name, reason in reasons.items()) or f'{bare(model["type"])} has no head'
        raise ConversionError(f'the config has no classifier that can become EBV ({why}); give another config')
    return found


def _walk(node: object, path: Path, scope: Optional[str], found: Found) -> None:
    if isinstance(node, (list, tuple)):
        for index, child in enumerate(node):
            _walk(child, (*path, index), scope, found)
    if not isinstance(node, dict):
        return
    name = '.'.join(map(str, path))
    if path and path[-1] in LEFT_KEYS:
        found.left[name] = LEFT_KEYS[path[-1]]
        return
    if 'type' in node and path and _classify(node, path, name, scope, found):
        return
    for key, child in node.items():
        _walk(child, (*path, key), node.get('_scope_', scope), found)


def _classify(node: dict, path: Path, name: str, scope: Optional[str], found: Found) -> bool:
    """Note what a typed dict is; returns whether that settles all that is below it."""
    kind = node['type']
    if bare(kind).startswith('EBV'):
        raise ConversionError(f'{name} is {bare(kind)} already; give the config of the host, not an EBV one')
    if not (bare(kind).endswith('Head') or 'num_classes' in node):
        return False
    cls = _class_of(kind, node.get('_scope_', scope))
    place = known(cls) if cls is not None else None
    if place is None:
        if bare(kind).endswith('Head') and 'num_classes' in node:
            found.left[name] = f'{bare(kind)} is unknown here; write EBVHead with its layer by hand'
        return False
    if not isinstance(place, Place):
        getattr(found, place.table)[name] = place.reason
        return True
    _note(node, cls, place, path, name, found)
    return True


def _note(node: dict, cls: type, place: Place, path: Path, name: str, found: Found) -> None:
    def get(argument: str) -> object:
        return node[argument] if argument in node else default_of(cls, argument)

    classes = place.classes(get)
    if not isinstance(classes, int) or classes < 0:
        if bare(node['type']).endswith('Head'):  # otherwise it is a backbone without its classifier
            found.left[name] = 'it has no num_classes of its own; write it there'
        return
    if place.agnostic and get(place.agnostic):
        found.left[name] = 'one output for all classes'
        return
    if cls.__name__ == 'ArcFaceClsHead' and get('num_subcenters') > 1:
        found.refused[name] = 'several centres for each class, of which the nearest counts'
        return
    loss = get(place.scores) if place.scores.startswith('loss') else None
    sigmoid = place.scores == 'sigmoid' or uses_sigmoid(loss)
    vectors = (get('out_channels') if place.scores == 'loss_decode' else None) or classes
    vectors += (0 if sigmoid else 1) if place.background is None else place.background
    custom = custom_channels(get('loss_cls')) if place.background == 1 else 0
    vectors += custom
    if vectors < 2:
        found.left[name] = 'one output'
        return
    layers = tuple(layer.rstrip('?') for layer in place.layers if not layer.endswith('?') or place.optional(get))
    found.classifiers.append(Classifier(path, node['type'], place, layers, vectors, sigmoid, custom == 1))
    found.classifiers[-1].changes = _changes(found.classifiers[-1], node)


def _changes(classifier: Classifier, node: dict) -> dict:
    """The type of the new head, and where its layers are, unless the type says so."""
    place, layers, kind = classifier.place, classifier.layers, node['type']
    if not classifier.sigmoid and not {'cls_predictor_cfg', 'predictor_cfg'} & set(node):
        if bare(kind) in OWN_TYPES:
            return dict(type=OWN_TYPES[bare(kind)])
        if layers == ('conv_seg',):
            return dict(type='EBVDecodeHead', head=kind)
    changes = dict(type='EBVHead', head=kind, layer=layers[0] if len(layers) == 1 else list(layers))
    if set(layers) & set(SIGMOID_LAYERS):
        own = dict(prior=place.prior)
        changes['layer'] = {layer: own if layer in SIGMOID_LAYERS else {} for layer in layers}
    if classifier.sigmoid:
        changes['prior'] = place.prior
    if place.scores == 'cosine':
        changes['tau'] = 1.0
    return changes


def uses_sigmoid(loss: object) -> bool:
    """Whether a loss, or one of several, is a sigmoid's; by its arguments, and by its name where it has no choice."""
    if isinstance(loss, (list, tuple)):
        return any(map(uses_sigmoid, loss))
    if not isinstance(loss, dict):
        return False
    name = bare(loss.get('type', ''))
    always = name in ('GHMC', 'AsymmetricLoss', 'VarifocalLoss', 'QualityFocalLoss', 'GaussianFocalLoss')
    by_default = name in ('FocalLoss', 'FocalCustomLoss') or loss.get('mode') == 'multi_label'
    return bool(loss.get('use_sigmoid', always or by_default))


def custom_channels(loss: object) -> int:
    """How many outputs beyond the background a box head's loss asks for: Seesaw has an objectness pair in its place."""
    if not isinstance(loss, dict):
        return 0
    name = bare(loss.get('type', ''))
    return 1 if name == 'SeesawLoss' else -1 if name == 'CrossEntropyCustomLoss' and uses_sigmoid(loss) else 0


def default_of(cls: type, argument: str) -> object:
    """The default of an argument, of the nearest class that declares it; None where none does."""
    for base in cls.__mro__:
        parameter = inspect.signature(base.__init__).parameters.get(argument) if '__init__' in vars(base) else None
        if parameter is not None:
            return None if parameter.default is inspect.Parameter.empty else parameter.default
    return None


def _class_of(kind: Union[str, type], scope: Optional[str]) -> Optional[type]:
    if not isinstance(kind, str):
        return kind
    scope, name = kind.split('.', 1) if '.' in kind else (scope, kind)
    for host in dict.fromkeys(filter(lambda host: host in HOSTS, (scope, *HOSTS))):
        try:
            cls = import_module(f'{host}.registry').MODELS.get(name)
        except ModuleNotFoundError:
            continue
        if isinstance(cls, type) and cls.__module__.startswith(f'{host}.'):
            return cls
    return None


def _scope_of(kind: Union[str, type]) -> Optional[str]:
    host = (kind if isinstance(kind, str) else kind.__module__).split('.')[0]
    return host if host in HOSTS else None


def bare(kind: Union[str, type]) -> str:
    """The name of a type without its scope."""
    return kind.split('.')[-1] if isinstance(kind, str) else kind.__name__
