"""A checkpoint of a host's model becomes one of its EBV model."""

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from mmengine.config import Config
from mmengine.runner.checkpoint import CheckpointLoader
from torch import Tensor, nn

from ..basis_state import HoldsBasis
from ..head import EBV_LAYERS
from .agreement import Agreement, agreement, fit_temperature
from .classifiers import Classifier, ConversionError
from .models import (
    build,
    compare_on_images,
    compare_on_random_features,
    in_scope,
    named_layers,
    noise,
    test_images,
)
from .other_names import mmpretrain_names
from .results import same_results
from .weights import plain_weights, projection, put_projection

EMA_PREFIX = 'module.'


@dataclass
class Layer:
    """An FC layer of a model and the EBV layer in its place."""

    name: str
    classifier: Classifier
    fc: nn.Module
    ebv: nn.Module

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
        theirs, ours = tuple(getattr(state.get(name), 'shape', ())), tuple(part.shape)
        if theirs and theirs[0] != ours[0] and theirs[1:] == ours[1:]:
            raise ConversionError(
                f'checkpoint {path!r} has {theirs[0]} outputs in {name}, but the config has {ours[0]}; give a '
                'checkpoint of as many classes'
            )
    try:
        missing = set(model.load_state_dict(state, strict=False).missing_keys)
    except RuntimeError as error:
        line = ' '.join(str(error).split())[:200]
        raise ConversionError(f'checkpoint {path!r} is of another model ({line}); give one of this config') from error
    lost = [name for name, _ in model.named_parameters() if name in missing]
    if lost:
        raise ConversionError(
            f'checkpoint {path!r} lacks {len(lost)} weights of the model, such as {lost[0]}; give a checkpoint of '
            'this config'
        )


def pair_layers(fc: nn.Module, ebv: nn.Module, classifiers: List[Classifier]) -> List[Layer]:
    """The layers of both models that stand in the same place."""
    layers = []
    for name, layer in named_layers(ebv, EBV_LAYERS):
        owner = max((c for c in classifiers if name.startswith(f'{c.name}.')), key=lambda c: len(c.name), default=None)
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
        made = projection(plain, layer.ebv.vectors, groups=layer.groups, prior=layer.ebv.prior)
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
    cfg: Config, ebv_cfg: Config, classifiers: List[Classifier], path: str, *, tau: Optional[float], images: int
) -> Converted:
    """Convert the weights of a checkpoint, and those of its moving average.

    Args:
        cfg, ebv_cfg: The host's config and the converted one.
        classifiers: Of the config.
        path: The checkpoint.
        tau: Temperature; None to fit one for each head on images.
        images: How many.
    """
    checkpoint = read_checkpoint(path)
    fc, ebv = build(cfg), build(ebv_cfg)
    load_weights(fc, mmpretrain_names(checkpoint['state_dict']), path)
    layers = pair_layers(fc, ebv, classifiers)
    convert_weights(fc, ebv, layers)
    batches, kind = test_images(cfg, images), 'test images'
    if batches is None:
        batches, kind = noise(cfg, images), 'images of noise'
    with in_scope(cfg):
        pairs = compare_on_images(fc, {layer.name: layer.ebv for layer in layers}, batches)
    taus = {}
    for classifier in classifiers:
        own = [layer for layer in layers if layer.classifier is classifier]
        seen = [pair for layer in own for pair in pairs[layer.name]]
        if tau is None and classifier.place.scores != 'cosine' and seen:
            taus[classifier.name] = float(f'{fit_temperature(seen, own[0].groups, own[0].ebv.prior):.3g}')
            for layer in own:
                layer.ebv.hold_tau(taus[classifier.name])
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
    if 'cfg' in out['meta']:
        out['meta']['cfg'] = ebv_cfg.pretty_text
    if 'ema_state_dict' in checkpoint:
        out['ema_state_dict'] = _convert_ema(checkpoint['ema_state_dict'], fc, ebv, layers)
    return Converted(out, layers, taus, random, compared, f'{len(batches)} {kind}', results)


def _convert_ema(state: dict, fc: nn.Module, ebv: nn.Module, layers: List[Layer]) -> dict:
    inner = {name[len(EMA_PREFIX) :]: value for name, value in state.items() if name.startswith(EMA_PREFIX)}
    outer = {name: value for name, value in state.items() if not name.startswith(EMA_PREFIX)}
    load_weights(fc, inner, 'ema_state_dict')
    convert_weights(fc, ebv, layers)
    return {**outer, **{f'{EMA_PREFIX}{name}': value for name, value in cpu_state(ebv).items()}}


def cpu_state(model: nn.Module) -> Dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}
