"""What a resolved config says, in the words of ``paper_facts.py``."""

import re

from experiments import load, nodes_with, plain
from mmengine.optim import build_optim_wrapper
from torch import nn

from ebv_mm.basis import size_in_name

NETWORKS = {('ResNet', 50): 'ResNet-50', ('CIFARResNet', 32): 'ResNet-32', ('SwinTransformer', None): 'Swin-T'}


def reading(name: str) -> dict:
    config = plain(load(name).to_dict())
    train = config['train_cfg']
    length = {
        key: train[limit] for key, limit in (('epochs', 'max_epochs'), ('iterations', 'max_iters')) if limit in train
    }
    common = dict(batch=config['auto_scale_lr']['base_batch_size'], **length, **_optimization(name))
    host = dict(mmpretrain=_classification, mmdet=_detection, mmseg=_segmentation)[name.split('/')[0]]
    return {**common, **host(config), 'seed': config.get('randomness', {}).get('seed')}


def _optimization(name: str) -> dict:
    """What the optimizer really does to the weights of a convolution and of a norm."""
    layers = nn.ModuleDict(dict(conv=nn.Conv2d(1, 1, 1), norm=nn.BatchNorm2d(1)))
    wrapper = load(name).optim_wrapper
    wrapper['type'] = 'OptimWrapper'  # without a GPU
    optimizer = build_optim_wrapper(layers, wrapper).optimizer
    groups = {id(p): group for group in optimizer.param_groups for p in group['params']}
    conv, norm = groups[id(layers['conv'].weight)], groups[id(layers['norm'].weight)]
    return dict(
        optimizer=type(optimizer).__name__,
        rate=conv['lr'],
        momentum=conv.get('momentum'),
        decay=conv['weight_decay'],
        decay_of_norms=norm['weight_decay'],
    )


def _classification(config: dict) -> dict:
    model, backbone, head = config['model'], config['model']['backbone'], config['model']['head']
    steps = {step['type']: step for step in config['train_dataloader']['dataset']['pipeline']}
    crop = steps.get('RandomResizedCrop', {}).get('scale') or steps['RandomCrop']['crop_size']
    heads = _heads(head)
    return dict(
        epochs=config['train_cfg'].get('max_epochs'),
        images=config['train_dataloader']['dataset']['type'],
        classes=head['num_classes'],
        network=NETWORKS[backbone['type'], backbone.get('depth')],
        pretrained=(backbone.get('init_cfg') or {}).get('checkpoint'),
        mixed_precision=config['optim_wrapper'].get('type') == 'AmpOptimWrapper',
        crop=crop,
        flip=steps['RandomFlip']['prob'],
        trivial_augment='torchvision/TrivialAugmentWide' in steps,
        erasing=steps.get('RandomErasing', {}).get('erase_prob', 0.0),
        smoothing=head['loss'].get('label_smooth_val', 0.0),
        mixes={mix['type']: mix['alpha'] for mix in (model.get('train_cfg') or {}).get('augments', ())},
        own_initialisation=None if 'Swin' in backbone['type'] else head.get('init_cfg', 'host') is not None,
        averaged_weights=bool(config.get('custom_hooks')),
        best_epoch=config['default_hooks']['checkpoint'].get('save_best') == 'accuracy/top1',
        ranks_draw_apart=config['randomness'].get('diff_rank_seed', False),
        test_size=_test_size(config['test_dataloader']['dataset']['pipeline']),
        head=heads.pop() if heads else None,
    )


def _test_size(pipeline: list):
    steps = {step['type']: step for step in pipeline}
    if 'ResizeCenterCrop' in steps:
        return (steps['ResizeCenterCrop']['size'],) * 2
    if 'ResizeEdge' in steps:
        return steps['ResizeEdge']['scale'], steps['CenterCrop']['crop_size']
    return None


def _detection(config: dict) -> dict:
    roi, dataset = config['model']['roi_head'], config['train_dataloader']['dataset']
    repeated = dataset.get('times', 1)
    while 'dataset' in dataset:
        dataset = dataset['dataset']
    steps = {step['type']: step for step in dataset['pipeline']}
    resize = steps.get('Resize') or steps.get('RandomResize') or steps['RandomChoiceResize']
    scales = resize.get('scales') or resize['scale']
    scales = scales if isinstance(scales[0], list) else [scales]
    masks = roi['mask_head']
    (classes,) = {node['num_classes'] for node in nodes_with('num_classes', roi)}
    boxes = _heads(roi['bbox_head'])
    return dict(
        classes=classes,
        repeated=repeated,
        short_edges=(min(min(scale) for scale in scales), max(min(scale) for scale in scales)),
        long_edge=max(max(scale) for scale in scales),
        polygons=not steps['LoadAnnotations'].get('poly2mask', True),
        flip=steps['RandomFlip']['prob'],
        test_scale=tuple(next(nodes_with('scale', config['test_dataloader']['dataset']['pipeline']))['scale']),
        heads=boxes.pop() if boxes else None,
        mask_heads=next(iter(_heads(masks)), None),
    )


def _segmentation(config: dict) -> dict:
    model = config['model']
    steps = {step['type']: step for step in config['train_dataloader']['dataset']['pipeline']}
    (classes,) = {node['num_classes'] for node in nodes_with('num_classes', model)}
    crop, padded = steps['RandomCrop']['crop_size'], model['data_preprocessor']['size']
    assert crop == padded == [512, 512]
    auxiliary = model.get('auxiliary_head') or {}
    return dict(
        classes=classes,
        scale=tuple(steps['RandomResize']['scale']),
        ratios=tuple(steps['RandomResize']['ratio_range']),
        crop=crop[0],
        flip=steps['RandomFlip']['prob'],
        auxiliary_weight=auxiliary.get('loss_decode', {}).get('loss_weight'),
        ignored=model['data_preprocessor']['seg_pad_val'],
        sliding=model['test_cfg']['mode'] == 'slide',
        heads=_heads(model),
    )


def _heads(node: object) -> set:
    """(N, d, tau) of every classifier with a basis."""
    return {(*size_in_name(head['basis']), head.get('tau', 0.07)) for head in nodes_with('basis', node)}


def imbalance_of(name: str) -> int:
    return int(re.search(r'-lt-(\d+)', name)[1])
