"""A checkpoint of a host's model becomes one of its EBV model."""

import math
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from mmengine.config import Config
from mmengine.runner.checkpoint import CheckpointLoader
from torch import Tensor, nn

from ..basis_state import HoldsBasis
from ..head import EBV_LAYERS
from .agreement import Agreement, Logits, agreement, fit_temperature, typical_length
from .classifiers import Classifier, ConversionError
from .models import (
    compare_on_images,
    compare_on_random_features,
    in_scope,
    named_layers,
    noise,
    places,
    test_images,
)
from .results import same_results
from .weights import plain_weights, projection, put_projection

EMA_PREFIX = 'module.'
# The constant that steadies |v|, in lengths of FC's logits: their scale then varies by 1 / (2 * 10^2), half a percent.
STEADINESS = 10


@dataclass
class Layer:
    """An FC layer of a model and the EBV layer in its place; ``steady`` as in :func:`~.weights.projection`."""

    name: str
    classifier: Classifier
    fc: nn.Module
    ebv: nn.Module
    steady: float = 0.0

    @property
    def anchors(self) -> int:
        return getattr(self.ebv, 'anchors', 1)

    @property
    def groups(self) -> Tuple[int, ...]:
        """The classes over which a softmax runs; Seesaw's objectness pair has one of its own."""
        if not self.classifier.softmax or self.ebv.prior is not None:
            return ()
        size = self.ebv.num_vectors
        return (size - 2, 2) if self.classifier.pairs else (size,)

    @property
    def parameters(self) -> Tuple[int, int]:
        count = (sum(p.numel() for p in layer.parameters()) for layer in (self.fc, self.ebv))
        return tuple(count)


def read_checkpoint(path: str) -> dict:
    """A checkpoint as a dict that has a state_dict; one sentence where it is none."""
    try:
        checkpoint = CheckpointLoader.load_checkpoint(path, map_location='cpu', logger='silent')
    except Exception as error:
        line = ' '.join(str(error).split())[:200]
        raise ConversionError(
            f'checkpoint {path!r} cannot be read ({type(error).__name__}: {line}); give a whole checkpoint file'
        ) from error
    if not isinstance(checkpoint, dict):
        raise ConversionError(f'checkpoint {path!r} holds a {type(checkpoint).__name__}, not the weights of a model')
    return checkpoint if 'state_dict' in checkpoint else dict(state_dict=checkpoint)


def load_weights(model: nn.Module, state: Dict[str, Tensor], path: str) -> None:
    """Load all weights of a model, by the host's own rules, or say which are missing or have another shape."""
    state = {name[len(EMA_PREFIX) :] if name.startswith(EMA_PREFIX) else name: part for name, part in state.items()}
    takes_basis = any(isinstance(module, HoldsBasis) for module in model.modules())
    if not takes_basis and any(name.endswith(('.basis', '.basis_recipe')) for name in state):
        raise ConversionError(f'checkpoint {path!r} is of an EBV model already; give one of the host')
    for name, part in model.named_parameters():
        if name.startswith('backbone.'):
            continue  # no classes there
        theirs, ours = tuple(getattr(state.get(name), 'shape', ())), tuple(part.shape)
        if theirs and theirs[0] != ours[0] and theirs[1:] == ours[1:]:
            raise ConversionError(
                f'checkpoint {path!r} has {theirs[0]} outputs in {name}, but the config has {ours[0]}; give a '
                'checkpoint of as many classes'
            )
    try:
        loaded = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        line = ' '.join(str(error).split())[:200]
        raise ConversionError(f'checkpoint {path!r} is of another model ({line}); give one of this config') from error
    lost = [name for name, _ in model.named_parameters() if name in set(loaded.missing_keys)]
    more = [name for name in loaded.unexpected_keys if name.endswith('.weight')]
    for names, what in ((lost, 'lacks {} weights of the model'), (more, 'has {} weights that the model has not')):
        if names:
            raise ConversionError(
                f'checkpoint {path!r} {what.format(len(names))}, such as {names[0]}; give a checkpoint of this config'
            )


def pair_layers(fc: nn.Module, ebv: nn.Module, classifiers: List[Classifier]) -> List[Layer]:
    """The layers of both models that stand in the same place."""
    heads = [(f'{place}.', classifier) for classifier in classifiers for place in places(ebv, classifier.name)]
    layers = []
    for name, layer in named_layers(ebv, EBV_LAYERS):
        _, owner = max((h for h in heads if name.startswith(h[0])), key=lambda h: len(h[0]), default=(None, None))
        if owner is None:
            raise ConversionError(f'{name} is an EBV layer that no classifier of the config has; report this')
        layers.append(Layer(name, owner, fc.get_submodule(name), layer))
    return layers


def convert_weights(fc: nn.Module, ebv: nn.Module, layers: List[Layer]) -> None:
    """Give an EBV model the weights of an FC model."""
    classifiers = tuple(f'{layer.name}.' for layer in layers)
    ebv.load_state_dict({k: v for k, v in fc.state_dict().items() if not k.startswith(classifiers)}, strict=False)
    for layer in layers:
        plain = plain_weights(layer.fc, layer.anchors)
        made = projection(plain, layer.ebv.vectors, groups=layer.groups, prior=layer.ebv.prior, steady=layer.steady)
        put_projection(layer.ebv, made)


@dataclass
class Converted:
    """A checkpoint's conversion, and how well it agrees; ``images`` says on what scores were compared."""

    checkpoint: dict
    layers: List[Layer]
    taus: Dict[str, float]
    random: Dict[str, Agreement]
    seen: Dict[str, Agreement]
    images: str
    results: str


def convert_checkpoint(
    checkpoint: dict,
    fc: nn.Module,
    layers: List[Layer],
    ebv: nn.Module,
    cfg: Config,
    *,
    tau: Optional[float],
    images: int,
) -> Converted:
    """Convert the weights of a checkpoint, and those of its moving average.

    Args:
        checkpoint: As :func:`read_checkpoint` gives it.
        fc, ebv: The host's model, which has the weights of the checkpoint, and the EBV model.
        layers: Of both, where they differ.
        cfg: The host's config.
        tau: Temperature; None to fit one for each head on images.
        images: How many.
    """
    batches, kind = test_images(cfg, images), 'test images'
    if batches is None:
        batches, kind = noise(cfg, images), 'images of noise'

    def look() -> Dict[str, List[Logits]]:
        convert_weights(fc, ebv, layers)
        with in_scope(cfg):
            return compare_on_images(fc, {layer.name: layer.ebv for layer in layers}, batches)

    def of_one_head() -> Iterator[Tuple[List[Layer], List[Logits]]]:
        """The layers that share a temperature, and what they gave."""
        for name in dict.fromkeys(layer.classifier.name for layer in layers):
            own = [layer for layer in layers if layer.classifier.name == name]
            yield own, [pair for layer in own for pair in pairs[layer.name]]

    pairs = look()
    for own, seen in of_one_head():
        for layer in own:
            layer.steady = steadiness(seen, own[0], cfg.get('default_scope'), tau)
    pairs = look()
    taus = {}
    for own, seen in of_one_head():
        if tau is None and own[0].classifier.place.scores != 'cosine' and seen:
            fitted = float(f'{fit_temperature(seen, own[0].groups, own[0].ebv.prior):.4g}')
            taus[own[0].classifier.name] = fitted
            for layer in own:
                layer.ebv.hold_tau(fitted)
    compared = {
        layer.name: agreement(pairs[layer.name], layer.ebv.tau, layer.groups, layer.ebv.prior) for layer in layers
    }
    random = {
        layer.name: agreement(
            compare_on_random_features(layer.fc, layer.ebv), layer.ebv.tau, layer.groups, layer.ebv.prior
        )
        for layer in layers
    }
    results = same_results(fc, ebv, cfg, batches)
    out = dict(meta=dict(checkpoint.get('meta') or {}), state_dict=cpu_state(ebv))
    if 'ema_state_dict' in checkpoint:
        out['ema_state_dict'] = _convert_ema(checkpoint['ema_state_dict'], fc, ebv, layers)
    return Converted(out, layers, taus, random, compared, f'{len(batches)} {kind}', results)


def steadiness(seen: List[Logits], layer: Layer, scope: Optional[str], tau: Optional[float]) -> float:
    """How large a constant steadies |v|, where scores of several features are compared.

    Boxes are ranked, maps of logits are resized, sigmoids rank images; only for a softmax of images the class is all.
    """
    compared = scope != 'mmpretrain' or layer.classifier.sigmoid
    if not compared or layer.classifier.place.scores == 'cosine':
        return 0.0
    length = typical_length(seen, layer.groups, layer.ebv.prior)
    return STEADINESS * length if tau is None else math.sqrt(max(1 / tau**2 - length**2, 0))


def _convert_ema(state: dict, fc: nn.Module, ebv: nn.Module, layers: List[Layer]) -> dict:
    inner = {name[len(EMA_PREFIX) :]: value for name, value in state.items() if name.startswith(EMA_PREFIX)}
    outer = {name: value for name, value in state.items() if not name.startswith(EMA_PREFIX)}
    load_weights(fc, inner, 'ema_state_dict')
    convert_weights(fc, ebv, layers)
    return {**outer, **{f'{EMA_PREFIX}{name}': value for name, value in cpu_state(ebv).items()}}


def cpu_state(model: nn.Module) -> Dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}
