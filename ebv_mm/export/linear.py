"""The host's own head with a linear classifier in place of an EBV one: for who has no ebv_mm where the model runs."""

from copy import deepcopy
from typing import Dict, Iterable, List, Tuple

import torch
from mmengine.config import Config
from mmengine.registry import DATA_SAMPLERS, DATASETS, HOOKS, METRICS, MODELS, TRANSFORMS
from torch import Tensor, nn
from torch.nn import functional

from ..config_nodes import nodes, type_name
from ..folding import fold
from ..head import EBV_LAYERS

# What a head of ours is without its basis, and the arguments that only ours have.
PLAIN_TYPES = {
    'EBVClsHead': 'LinearClsHead',
    'EBVBBoxHead': 'Shared2FCBBoxHead',
    'EBVMaskHead': 'FCNMaskHead',
    'EBVLinear': 'Linear',
    'EBVConv2d': 'Conv',
}
OURS = ('basis', 'tau', 'balanced_init', 'prior', 'reserve', 'streaming', 'predict_topk')
# where norm_cfg is of the embedding; elsewhere it is the host's
NORMED = ('EBVClsHead', 'EBVLinear', 'EBVConv2d')
# where names of ours are registered
REGISTRIES = (MODELS, DATASETS, TRANSFORMS, METRICS, HOOKS, DATA_SAMPLERS)
# of the temperature and of cosines; waves are for any classifier
EBV_HOOKS = ('TauHook', 'EBVMonitorHook')
MOST_FEATURES = 4096
PIXELS_PER_IMAGE = 500


def linear_config(cfg: Config) -> Config:
    """The config with each head of ours replaced by the host's own, without the hooks that only EBV layers need.

    It imports ebv_mm only if it names something else of ours: :func:`names_of_ours`.
    """
    cfg = cfg.copy()
    cfg.model = type(cfg.model)(_plain(cfg.model.to_dict()))
    if cfg.get('custom_hooks'):
        cfg.custom_hooks = [hook for hook in cfg.custom_hooks if type_name(hook) not in EBV_HOOKS]
    for name, hook in (cfg.get('default_hooks') or {}).items():
        if isinstance(hook, dict) and type_name(hook) in EBV_HOOKS:
            cfg.default_hooks[name] = None
    if cfg.get('custom_imports') and not names_of_ours(cfg):
        imports = cfg.custom_imports['imports']
        imports = [imports] if isinstance(imports, str) else imports
        others = [name for name in imports if name.partition('.')[0] != 'ebv_mm']
        cfg.pop('custom_imports')
        if others:
            cfg.custom_imports = dict(imports=others, allow_failed_imports=False)
    return cfg


def names_of_ours(cfg: Config) -> List[str]:
    """The types of ebv_mm that a config names, such as a data set or a metric, each once."""
    return sorted({type_name(node) for _, node in nodes(cfg._cfg_dict) if is_ours(node)})


def is_ours(node: dict) -> bool:
    """Whether the type of a config's node is one of ebv_mm."""
    kind, name = node.get('type'), type_name(node)
    found = [kind, *(registry.module_dict.get(name) for registry in REGISTRIES)]
    return any(str(getattr(one, '__module__', '')).partition('.')[0] == 'ebv_mm' for one in found)


def _plain(node: object) -> object:
    if isinstance(node, (list, tuple)):
        return [_plain(child) for child in node]
    if not isinstance(node, dict):
        return node
    name = type_name(node)
    if 'basis' not in node or not name.startswith('EBV'):
        return {key: _plain(child) for key, child in node.items()}
    ours = (*OURS, 'norm_cfg') if name in NORMED else OURS
    kept = {key: _plain(child) for key, child in node.items() if key not in ours}
    if name == 'EBVDecodeHead':
        kept['type'] = kept.pop('head')
    elif name == 'EBVHead':
        head = kept.pop('head')
        own = {key: value for key, value in kept.items() if key not in ('type', 'layer')}
        kept = {**(head if isinstance(head, dict) else dict(type=head)), **own}
    elif name in PLAIN_TYPES:
        kept['type'] = PLAIN_TYPES[name]
    else:
        raise TypeError(f"{name} has no plain twin that is known here; build the host's own head by hand and fold()")
    return kept


def linear_twin(model: nn.Module, cfg: Config, batches: Iterable[dict]) -> Tuple[nn.Module, Config, Dict[str, float]]:
    r"""The model with linear classifiers :math:`s (W A x + W b)`, its config, and each classifier's s.

    The predicted class of every single vector of features stays. Its scores do not, because EBV divides by
    :math:`\tau \lVert v \rVert`, which varies, and a linear layer by one number: s is the one with which the scores
    come closest to those of the model, by their mean cross-entropy on the features of these batches.
    """
    layers = {name: module for name, module in model.named_modules() if isinstance(module, EBV_LAYERS)}
    features = _features(model, layers, batches)
    twin_cfg = linear_config(cfg)
    twin = MODELS.build(deepcopy(twin_cfg.model))  # some heads change their config
    state, scales = model.state_dict(), {}
    for name, layer in layers.items():
        if not features[name]:
            raise ValueError(f'{name} saw no features in these images, so its temperature is unknown; give more images')
        plain = fold(layer)
        x = torch.cat(features[name])
        with torch.no_grad():
            scale = scales[name] = fitted_scale(plain(x), layer(x), sigmoid=name.endswith('conv_logits'))
        # the basis, its recipe, a norm, a tau: all that is the EBV layer's own goes
        state = {key: value for key, value in state.items() if not key.startswith(f'{name}.')}
        state.update({f'{name}.{key}': value.detach() * scale for key, value in plain.named_parameters()})
    twin.load_state_dict(state)
    return twin.eval(), twin_cfg, scales


def fitted_scale(products: Tensor, logits: Tensor, *, sigmoid: bool) -> float:
    """The s for which the scores of ``s * products`` have the least cross-entropy to those of ``logits``.

    Classes are in dimension 1. The cross-entropy is convex in s, so a ternary search finds it.
    """
    wanted = logits.sigmoid() if sigmoid else logits.softmax(1)

    def loss(log_scale: float) -> float:
        scaled = products * float(torch.tensor(log_scale, dtype=torch.float64).exp())
        if sigmoid:
            return float(functional.binary_cross_entropy_with_logits(scaled, wanted))
        return float(-(wanted * scaled.log_softmax(1)).sum(1).mean())

    low, high = -20.0, 20.0
    while high - low > 1e-4:
        third = (high - low) / 3
        if loss(low + third) < loss(high - third):
            high -= third
        else:
            low += third
    return float(torch.tensor((low + high) / 2, dtype=torch.float64).exp())


@torch.no_grad()
def _features(model: nn.Module, layers: Dict[str, nn.Module], batches: Iterable[dict]) -> Dict[str, List[Tensor]]:
    """Inputs of the layers as the model predicts, some thousand of each; a pixel is a feature as well."""
    seen: Dict[str, List[Tensor]] = {name: [] for name in layers}

    def keep(name: str):
        def hook(layer: nn.Module, inputs: tuple, output: Tensor) -> None:
            if sum(map(len, seen[name])) < MOST_FEATURES:
                seen[name].append(_some(layer, inputs[0]))

        return hook

    hooks = [layer.register_forward_hook(keep(name)) for name, layer in layers.items()]
    try:
        for batch in batches:
            data = model.data_preprocessor(batch, False)
            model.eval()(data['inputs'], data.get('data_samples'), mode='predict')
            if hasattr(model, 'auxiliary_head') and getattr(model, 'with_auxiliary_head', False):
                _run_auxiliary(model, data['inputs'])
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _some(layer: nn.Module, x: Tensor) -> Tensor:
    """Of the pixels that a 1 x 1 convolution sees some, evenly spread; otherwise all, classes in dimension 1."""
    if isinstance(layer, nn.Linear):
        return x.flatten(0, -2)  # queries of a transformer come in rows
    if layer.kernel_size != (1, 1):
        return x
    pixels = x.movedim(1, -1).flatten(0, -2)
    return pixels[:: max(1, len(pixels) // PIXELS_PER_IMAGE)][:, :, None, None]


def _run_auxiliary(model: nn.Module, inputs: Tensor) -> None:
    """Auxiliary heads take no part in predictions, but a checkpoint has them."""
    heads = model.auxiliary_head if isinstance(model.auxiliary_head, nn.ModuleList) else [model.auxiliary_head]
    features = model.extract_feat(inputs)
    for head in heads:
        head(features)
