"""The nearest class mean as a head: fixed vectors that are the means of what a trained classifier is given."""

from copy import deepcopy
from pathlib import Path
from typing import Iterable

import torch
from mmengine.config import Config
from mmpretrain.models.heads import ArcFaceClsHead, LinearClsHead
from mmpretrain.registry import MODELS
from torch import Tensor, nn
from torch.nn.functional import normalize

from .basis import DenseBasis, save_basis
from .config_nodes import imports_with_ours, nodes
from .launch.configs import ConfigError

# heads whose classifier takes the last feature as it is
HEADS = (LinearClsHead, ArcFaceClsHead)


def images_of_all(cfg: Config) -> dict:
    """The loader of a config's training images, each once, prepared as those of its test."""
    absent = [name for name in ('train_dataloader', 'test_dataloader') if cfg.get(name) is None]
    if absent:
        raise ConfigError(
            f'the config has no {" and no ".join(absent)}, but class means are of the training images, prepared as '
            'those of the test; give a config that has both'
        )
    loader = deepcopy(cfg.test_dataloader.to_dict())
    pipeline, loader['dataset'] = loader['dataset'].get('pipeline'), deepcopy(cfg.train_dataloader.dataset.to_dict())
    for _, node in list(nodes(loader['dataset'])):
        if 'pipeline' in node:
            node['pipeline'] = deepcopy(pipeline)
    return loader


@torch.no_grad()
def class_means(model: nn.Module, batches: Iterable[dict], num_classes: int) -> Tensor:
    """The direction (N, C) of each class: of the sum of the unit vectors that its images give the classifier.

    Args:
        model: A classifier with a linear, an EBV or an ArcFace head, for evaluation.
        batches: Of the host's loader.
        num_classes: N; each must have an image.
    """
    head = getattr(model, 'head', None)
    if not isinstance(head, HEADS):
        raise ConfigError(
            f'{type(head or model).__name__} is none of LinearClsHead, EBVClsHead and ArcFaceClsHead, whose classifier '
            'takes the feature as it is; give a model that has one of them'
        )
    sums, counts = None, torch.zeros(num_classes, dtype=torch.long)
    for batch in batches:
        data = model.data_preprocessor(batch, False)
        features = head.pre_logits(model.extract_feat(data['inputs'])).float()
        labels = torch.cat([sample.gt_label for sample in data['data_samples']]).to(features.device)
        if len(labels) != len(features):
            raise ConfigError('an image has several labels, and belongs to no one mean; give images of one class each')
        if labels.max() >= num_classes:
            raise ConfigError(
                f'an image has the label {int(labels.max())}, but there are {num_classes} classes; give --num-classes '
                f'{int(labels.max()) + 1} or more'
            )
        if sums is None:
            sums = features.new_zeros(num_classes, features.shape[1])
        sums.index_add_(0, labels, normalize(features))
        counts += labels.cpu().bincount(minlength=num_classes)
    empty = (counts == 0).nonzero().flatten().tolist()
    if empty:
        raise ConfigError(
            f'{len(empty)} of {num_classes} classes have no training image, class {empty[0]} the first; give the data '
            'set of all classes, by --cfg-options train_dataloader.dataset..., or fewer classes'
        )
    return normalize(sums).cpu()


def classify_by_means(cfg: Config, model: nn.Module, means: Tensor, folder: Path) -> None:
    """Give a model, and its config, a head that classifies by the largest cosine to the means; both in place.

    The head is an EBVClsHead whose projection is the identity; its vectors are written into ``folder``, too. What only
    training needs is taken out of the config.
    """
    num_classes, channels = means.shape
    basis = DenseBasis(means, method='class means', source='the class means')
    file = folder / f'{num_classes}x{channels}_means.safetensors'
    save_basis(basis, file)
    old = cfg.model.head
    kept = {key: old[key] for key in ('predict_topk', 'topk', 'cal_acc') if old.get(key) is not None}
    head = dict(type='EBVClsHead', num_classes=num_classes, in_channels=channels, basis=str(file), **kept)
    cfg.model.head = head
    cfg.custom_imports = dict(imports=imports_with_ours(cfg), allow_failed_imports=False)
    for key in ('train_dataloader', 'train_cfg', 'optim_wrapper', 'param_scheduler', 'load_from', 'work_dir'):
        cfg[key] = None
    for preprocessor in (cfg.get('data_preprocessor'), cfg.model.get('data_preprocessor')):
        if preprocessor and preprocessor.get('num_classes') is not None:
            preprocessor['num_classes'] = num_classes
    model.head = MODELS.build(deepcopy(head))
    with torch.no_grad():
        nn.init.eye_(model.head.fc.weight)
        nn.init.zeros_(model.head.fc.bias)
