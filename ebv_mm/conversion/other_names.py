"""State dicts of timm and torchvision under mmpretrain's names: ResNets, which differ in prefixes alone, and Swins."""

import re
from typing import Dict, List, Tuple

import torch
from torch import Tensor

Rules = List[Tuple[str, str]]
# timm's Swin, its downsampling at the end of a stage, as it stood until 0.9.
TIMM_SWIN: Rules = [
    (r'^patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'^patch_embed\.norm\.', 'backbone.patch_embed.norm.'),
    (r'^layers\.(\d)\.blocks\.(\d+)\.attn\.', r'backbone.stages.\1.blocks.\2.attn.w_msa.'),
    (r'^layers\.(\d)\.blocks\.(\d+)\.mlp\.fc1\.', r'backbone.stages.\1.blocks.\2.ffn.layers.0.0.'),
    (r'^layers\.(\d)\.blocks\.(\d+)\.mlp\.fc2\.', r'backbone.stages.\1.blocks.\2.ffn.layers.1.'),
    (r'^layers\.(\d)\.blocks\.', r'backbone.stages.\1.blocks.'),
    (r'^layers\.(\d)\.downsample\.', r'backbone.stages.\1.downsample.'),
    (r'^norm\.', 'backbone.norm3.'),
    (r'^head\.(fc\.)?', 'head.fc.'),
]
# torchvision's Swin under the names above: its features are patches, blocks, downsampling, blocks, and so on.
TORCHVISION_SWIN: Rules = [
    (r'^features\.0\.0\.', 'patch_embed.proj.'),
    (r'^features\.0\.2\.', 'patch_embed.norm.'),
    *((rf'^features\.{2 * stage + 1}\.', f'layers.{stage}.blocks.') for stage in range(4)),
    *((rf'^features\.{2 * stage + 2}\.', f'layers.{stage}.downsample.') for stage in range(3)),
]
# Made by the constructor: the masks of shifted windows, the places of a window's pixels relative to each other.
DERIVED = ('attn_mask', 'relative_position_index')


def mmpretrain_names(state: Dict[str, Tensor]) -> Dict[str, Tensor]:
    """The same weights under mmpretrain's names, whatever prefixes wrappers gave them; others' states as they are."""
    bare = {re.sub(r'^(module\.)?(backbone\.)?', '', name): value for name, value in state.items()}
    if 'layer1.0.conv1.weight' in bare and 'fc.weight' in bare:
        return {f'head.{name}' if name.startswith('fc.') else f'backbone.{name}': part for name, part in bare.items()}
    if 'features.1.0.attn.qkv.weight' in bare:
        return _swin({_mlp(_renamed(name, TORCHVISION_SWIN)): value for name, value in bare.items()})
    if 'patch_embed.proj.weight' in bare and 'layers.0.blocks.0.attn.qkv.weight' in bare:
        return _swin(bare)
    return state


def _mlp(name: str) -> str:
    """Torchvision's MLP is a sequence, with an activation and a dropout between its two layers."""
    return name.replace('.mlp.0.', '.mlp.fc1.').replace('.mlp.3.', '.mlp.fc2.')


def _swin(state: Dict[str, Tensor]) -> Dict[str, Tensor]:
    later = 'layers.0.downsample.reduction.weight' not in state  # timm >= 0.9: it begins the next stage
    out = {}
    for name, value in state.items():
        if name.endswith(DERIVED):
            continue
        if '.downsample.' in name:
            value = unfold_order(value)
            if later:
                name = re.sub(r'^layers\.(\d)', lambda match: f'layers.{int(match[1]) - 1}', name)
        out[_renamed(name, TIMM_SWIN)] = value
    return out


def _renamed(name: str, rules: Rules) -> str:
    """By the first rule that applies."""
    for pattern, new in rules:
        name, changed = re.subn(pattern, new, name)
        if changed:
            break
    return name


def unfold_order(value: Tensor) -> Tensor:
    """Four neighbours one after the other (timm, torchvision: columns first) -> channel by channel, rows first."""
    parts = value.reshape(*value.shape[:-1], 4, -1)
    parts = parts.index_select(-2, torch.tensor([0, 2, 1, 3]))
    return parts.transpose(-1, -2).reshape(value.shape)
