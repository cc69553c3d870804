"""The nearest class mean as a head: fixed vectors that are the means of what a trained classifier is given."""

from copy import deepcopy
from pathlib import Path
from typing import Iterable

import torch
from mmengine.config import Config
from mmpretrain.models.classifiers import ImageClassifier
from mmpretrain.models.heads import ArcFaceClsHead, LinearClsHead
from mmpretrain.registry import MODELS
from torch import Tensor, nn
from torch.nn.functional import normalize

from .basis import DenseBasis, save_basis
from .classification.head import MANY_CLASSES
from .config_nodes import imports_with_ours, nodes
from .launch.configs import ConfigError

# heads whose classifier takes the last feature as it is
HEADS = (LinearClsHead, ArcFaceClsHead)
FEW = 5  # classes that are predicted, where the scores of all would not fit into memory
# what only training needs, and what is of the run before
DROPPED = ('train_dataloader', 'train_cfg', 'optim_wrapper', 'param_scheduler', 'load_from', 'resume', 'work_dir')


def images_of_all(cfg: Config) -> dict:
    """The loader of a config's training images, each as often as the data set has it, prepared as those of its test."""
    absent = [name for name in ('train_dataloader', 'test_dataloader') if cfg.get(name) is None]
    if absent:
        raise ConfigError(
            f'the config has no {" and no ".join(absent)}, but class means are of the training images, prepared as '
            'those of the test; give a config that has both'
        )
    loader, images = deepcopy(cfg.test_dataloader.to_dict()), deepcopy(cfg.train_dataloader.dataset.to_dict())
    pipelines = [node['pipeline'] for _, node in nodes(loader['dataset']) if node.get('pipeline') is not None]
    if not pipelines or any(pipeline != pipelines[0] for pipeline in pipelines):
        raise ConfigError(
            f'the test data has {len(pipelines)} pipelines, but the training images are to be prepared by one; give '
            'test_dataloader.dataset a pipeline, the same one wherever there are several'
        )
    for _, node in list(nodes(images)):
        if 'pipeline' in node:
            node['pipeline'] = deepcopy(pipelines[0])
    return {**loader, 'dataset': images}


def check_classifier(model: nn.Module, num_classes: int) -> None:
    """Raise unless it is an image classifier whose head can give way to one of class means."""
    head = getattr(model, 'head', None)
    if not isinstance(model, ImageClassifier) or not isinstance(head, HEADS):
        raise ConfigError(
            f'the model is of type {type(model).__name__} and its head of type {type(head).__name__}, but class means '
            'are of the feature that an ImageClassifier gives a LinearClsHead, EBVClsHead or ArcFaceClsHead; give such '
            'a model'
        )
    topk = getattr(head, 'predict_topk', None) or 1
    if topk > num_classes:
        raise ConfigError(
            f'predict_topk = {topk}, but there are {num_classes} classes; add --cfg-options '
            f'model.head.predict_topk={num_classes}'
        )


@torch.no_grad()
def class_means(model: nn.Module, batches: Iterable[dict], num_classes: int) -> Tensor:
    """The direction (N, C) of each class: of the sum of the unit vectors that its images give the classifier.

    Args:
        model: A classifier with a linear, an EBV or an ArcFace head, for evaluation.
        batches: Of the host's loader.
        num_classes: N; each must have an image.
    """
    check_classifier(model, num_classes)
    model.data_preprocessor.to_onehot = False  # as mixup asks for, among the classes that were trained
    sums, counts = None, torch.zeros(num_classes, dtype=torch.long)
    for batch in batches:
        data = model.data_preprocessor(batch, False)
        features = model.head.pre_logits(model.extract_feat(data['inputs'])).float()
        labels = [sample.gt_label for sample in data['data_samples']]
        if any(len(label) != 1 for label in labels):
            raise ConfigError('an image has no label, or several, and belongs to no one mean; give it one class')
        labels = torch.cat(labels).to(features.device)
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


def classify_by_means(cfg: Config, model: nn.Module, means: Tensor, file: Path) -> None:
    """Give a model, and its config, a head that classifies by the largest cosine to the means; both in place.

    The head is an EBVClsHead whose projection is the identity; its vectors are written into a file, too. What only
    training needs is taken out of the config.
    """
    num_classes, channels = means.shape
    save_basis(DenseBasis(means, method='class means', source='the class means'), file)
    old = cfg.model.head
    kept = {key: old[key] for key in ('predict_topk', 'topk', 'cal_acc') if old.get(key) is not None}
    if num_classes >= MANY_CLASSES:
        kept.setdefault('predict_topk', FEW)
    head = dict(type='EBVClsHead', num_classes=num_classes, in_channels=channels, basis=str(file), **kept)
    cfg.model.head = head
    cfg.model.pop('train_cfg', None)
    cfg.custom_imports = dict(imports=imports_with_ours(cfg), allow_failed_imports=False)
    for key in DROPPED:
        cfg.pop(key, None)
    for preprocessor in (cfg.get('data_preprocessor'), cfg.model.get('data_preprocessor')):
        if preprocessor:
            preprocessor.pop('batch_augments', None)
            preprocessor.pop('to_onehot', None)
            if preprocessor.get('num_classes') is not None:
                preprocessor['num_classes'] = num_classes
    model.head = MODELS.build(deepcopy(head))
    with torch.no_grad():
        nn.init.eye_(model.head.fc.weight)
        nn.init.zeros_(model.head.fc.bias)
