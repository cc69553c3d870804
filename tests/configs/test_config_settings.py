"""What the paper and the authors' logs say, row by row, against the resolved configs.

A row maps a dotted place of the config to its value, ``ABSENT`` where nothing may be. Three names are no places:
``batch`` is (GPUs, images on each), ``heads`` the set of (N, d, tau), ``test`` the size at which each epoch is tested.
"""

import inspect

import pytest
import torchvision
from experiments import CONFIGS, load, nodes_with, plain

from ebv_mm.basis import size_in_name

ABSENT = None
SGD = dict(type='SGD', lr=0.5, momentum=0.9, weight_decay=2e-5)


def adamw(lr: float) -> dict:
    return dict(type='AdamW', lr=lr, weight_decay=2e-5)


def amp(optimizer: dict) -> dict:
    # the whole wrapper: no paramwise_cfg, hence weight decay on all parameters, norms included
    return dict(type='AmpOptimWrapper', optimizer=optimizer)


CROP_AND_FLIP = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=224, backend='pillow', interpolation='bilinear'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]
TRIVIAL_AUGMENT = [
    dict(type='NumpyToPIL', to_rgb=True),
    dict(type='torchvision/TrivialAugmentWide', interpolation='bilinear'),
    dict(type='PILToNumpy', to_bgr=True),
]
ERASE = [
    dict(
        type='RandomErasing',
        erase_prob=0.1,
        min_area_ratio=0.02,
        max_area_ratio=0.33,
        aspect_range=[0.3, 3.3],
        mode='const',
        fill_color=[103.53, 116.28, 123.675],
    )
]
PACK = [dict(type='PackInputs')]
SMOOTH = dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original')
MIXUP = dict(type='Mixup', alpha=0.2)
CUTMIX = dict(type='CutMix', alpha=1.0)
AUGMENTS = 'model.train_cfg.augments'
PIPELINE = 'train_dataloader.dataset.pipeline'
OPTIMIZER = 'optim_wrapper.optimizer'
EPOCHS = 'train_cfg.max_epochs'

A1 = {
    'batch': (8, 128),
    'optim_wrapper': amp(SGD),
    EPOCHS: 105,
    PIPELINE: CROP_AND_FLIP + TRIVIAL_AUGMENT + ERASE + PACK,
    'model.head.loss': dict(type='CrossEntropyLoss', loss_weight=1.0),
    AUGMENTS: ABSENT,
    'model.head.init_cfg': None,  # torch's own
    'model.backbone.type': 'ResNet',
    'model.backbone.depth': 50,
    'model.backbone.init_cfg': ABSENT,
    'train_dataloader.dataset.type': 'ImageNet',
    'train_dataloader.dataset.split': 'train',
    'val_dataloader.dataset.split': 'val',
    'data_preprocessor.mean': [123.675, 116.28, 103.53],
    'data_preprocessor.std': [58.395, 57.12, 57.375],
    'default_hooks.checkpoint.save_best': 'accuracy/top1',
    'randomness.seed': 42,
    'custom_hooks': ABSENT,  # no EMA
    'test': 256,
    'heads': set(),
}
A2 = {**A1, 'model.head.loss': SMOOTH, AUGMENTS: [MIXUP, CUTMIX]}
SWIN = {
    'optim_wrapper': amp(adamw(0.001)),
    'model.backbone.type': 'SwinTransformer',
    'model.backbone.depth': ABSENT,
    'model.backbone.arch': 'tiny',
    'test': 224,
}


def ebv(num_classes: int, dim: int, tau: float = 0.07) -> dict:
    return dict(heads={(num_classes, dim, tau)})


TABLE = {
    'mmpretrain/resnet50_fc_a0': {
        'batch': (8, 32),
        'optim_wrapper': dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=1e-4)),
        'train_cfg.max_iters': 600000,
        'model.head.loss': A1['model.head.loss'],
        AUGMENTS: ABSENT,
        'model.backbone.depth': 50,
        'tta_model': dict(type='AverageClsScoreTTA'),
        'heads': set(),
    },
    'mmpretrain/resnet50_fc_a1': A1,
    'mmpretrain/resnet50_ebv_a1': {**A1, **ebv(1000, 1000)},
    'mmpretrain/resnet50_fc_a2': A2,
    'mmpretrain/resnet50_ebv_a2': {**A2, **ebv(1000, 1000)},
    'mmpretrain/swin_tiny_fc_a1': {**A1, **SWIN},
    'mmpretrain/swin_tiny_ebv_a1': {**A1, **SWIN, **ebv(1000, 1000)},
    'mmpretrain/swin_tiny_fc_a2': {**A2, **SWIN},
    'mmpretrain/swin_tiny_ebv_a2': {**A2, **SWIN, **ebv(1000, 1000)},
    'mmpretrain/resnet50_ebv_a2_d100_305e': {**A2, EPOCHS: 305, **ebv(1000, 100)},
    'mmpretrain/ablation/resnet50_fc_lr': {**A1, PIPELINE: CROP_AND_FLIP + PACK},
}
for setting, row in (('a1', A1), ('a2', A2)):
    for lr in ('1e-3', '1e-2'):
        TABLE[f'mmpretrain/resnet50_fc_{setting}_adamw-{lr}'] = {**row, 'optim_wrapper': amp(adamw(float(lr)))}
    fixed = {**row, 'optim_wrapper': amp(adamw(0.01)), **ebv(1000, 1000)}
    TABLE[f'mmpretrain/resnet50_ebv_{setting}_adamw-1e-2'] = fixed
for epochs in (305, 605):
    TABLE[f'mmpretrain/resnet50_fc_a2_{epochs}e'] = {**A2, EPOCHS: epochs}
    TABLE[f'mmpretrain/resnet50_ebv_a2_{epochs}e'] = {**A2, EPOCHS: epochs, **ebv(1000, 1000)}
for dim in (100, 200, 300, 400, 500, 2000):
    TABLE[f'mmpretrain/resnet50_ebv_a2_d{dim}'] = {**A2, **ebv(1000, dim)}
for head, heads in (('fc', {}), ('ebv', ebv(1000, 1000))):
    path = f'mmpretrain/ablation/resnet50_{head}'
    TABLE[f'{path}_lr_ta'] = {**A1, PIPELINE: CROP_AND_FLIP + TRIVIAL_AUGMENT + PACK, **heads}
    TABLE[f'{path}_a1_ls'] = {**A1, 'model.head.loss': SMOOTH, **heads}
    TABLE[f'{path}_a1_ls_mixup'] = {**A1, 'model.head.loss': SMOOTH, AUGMENTS: [MIXUP], **heads}

INAT = {
    **A1,
    EPOCHS: 200,
    'model.head.num_classes': 8142,
    'data_preprocessor.num_classes': 8142,
    'train_dataloader.dataset.type': 'INaturalist2018',
    'train_dataloader.dataset.split': ABSENT,
    'val_dataloader.dataset.split': ABSENT,
    'train_dataloader.dataset.ann_file': 'train2018.json',
    'val_dataloader.dataset.ann_file': 'val2018.json',
}
TABLE['mmpretrain/resnet50_fc_inat2018'] = INAT
TABLE['mmpretrain/resnet50_ebv_inat2018'] = {**INAT, **ebv(8142, 8142, 0.02)}
MANY = {
    **INAT,
    EPOCHS: 105,
    'model.backbone.init_cfg': dict(type='Pretrained', checkpoint='torchvision://resnet50'),
    'model.head.num_classes': 100000,
    'data_preprocessor.num_classes': 100000,
    'train_dataloader.dataset.type': 'CustomDataset',
    'train_dataloader.dataset.ann_file': 'train.txt',
    'val_dataloader.dataset.ann_file': 'val.txt',
    'val_evaluator': dict(type='StreamingAccuracy', topk=[1, 5]),
}
TABLE['mmpretrain/resnet50_fc_100k'] = MANY
TABLE['mmpretrain/resnet50_ebv_100k'] = {**MANY, **ebv(100000, 5000, 0.007)}
TABLE['mmpretrain/resnet50_fc_100k_adamw-1e-3'] = {**MANY, 'optim_wrapper': amp(adamw(0.001))}

for num_classes in (10, 100):
    for imbalance in (100, 50, 10):
        row = {
            'batch': (1, 128),
            'optim_wrapper': dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=5e-4)),
            EPOCHS: 200,
            PIPELINE: [
                dict(type='RandomCrop', crop_size=32, padding=4),
                dict(type='RandomFlip', prob=0.5, direction='horizontal'),
                dict(type='PackInputs'),
            ],
            'model.head.loss': A1['model.head.loss'],
            AUGMENTS: ABSENT,
            'model.backbone': dict(type='CIFARResNet', depth=32),
            'model.head.num_classes': num_classes,
            'train_dataloader.dataset.type': f'LongTailCIFAR{num_classes}',
            'train_dataloader.dataset.imbalance': imbalance,
            'train_dataloader.dataset.split': 'train',
            'val_dataloader.dataset.type': f'CIFAR{num_classes}',  # balanced
            'val_dataloader.dataset.split': 'test',
            'val_dataloader.dataset.pipeline': [dict(type='PackInputs')],
            'heads': set(),
        }
        TABLE[f'mmpretrain/resnet32_fc_cifar{num_classes}-lt-{imbalance}'] = row
        TABLE[f'mmpretrain/resnet32_ebv_cifar{num_classes}-lt-{imbalance}'] = {**row, **ebv(num_classes, num_classes)}

NO_DECAY = dict(
    custom_keys={key: dict(decay_mult=0.0) for key in ('absolute_pos_embed', 'relative_position_bias_table', 'norm')}
)
DETECTION_SGD = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.02, momentum=0.9, weight_decay=1e-4))
BOX_LOSS = dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0)
RESIZE = dict(type='Resize', scale=[1333, 800], keep_ratio=True)
COCO = {
    'batch': (8, 2),
    'optim_wrapper': DETECTION_SGD,
    EPOCHS: 12,
    'train_dataloader.dataset.type': 'CocoDataset',
    f'{PIPELINE}.2': RESIZE,
    f'{PIPELINE}.3': dict(type='RandomFlip', prob=0.5),
    'test_dataloader.dataset.pipeline.1': RESIZE,
    'model.roi_head.bbox_head.loss_cls': BOX_LOSS,
    'model.roi_head.bbox_head.num_classes': 80,
    'model.roi_head.mask_head.num_classes': 80,
    'model.roi_head.mask_head.loss_mask': dict(type='CrossEntropyLoss', use_mask=True, loss_weight=1.0),
    'model.backbone.type': 'ResNet',
    **ebv(81, 81),
}
REPEATED = 'train_dataloader.dataset.dataset'
TABLE['mmdet/mask_rcnn_r50_ebv_1x'] = COCO
TABLE['mmdet/mask_rcnn_r50_ebv_3x'] = {
    **{place: value for place, value in COCO.items() if not place.startswith(PIPELINE)},
    'train_dataloader.dataset.type': 'RepeatDataset',
    'train_dataloader.dataset.times': 3,
    f'{REPEATED}.pipeline.1': dict(type='LoadAnnotations', with_bbox=True, with_mask=True, poly2mask=False),
    f'{REPEATED}.pipeline.2': dict(type='RandomResize', scale=[[1333, 640], [1333, 800]], keep_ratio=True),
    f'{REPEATED}.pipeline.3': dict(type='RandomFlip', prob=0.5),
}
TABLE['mmdet/mask_rcnn_swin_tiny_ebv_1x'] = {
    **COCO,
    'optim_wrapper': dict(
        type='OptimWrapper',
        paramwise_cfg=NO_DECAY,
        optimizer=dict(type='AdamW', lr=1e-4, betas=[0.9, 0.999], weight_decay=0.05),
    ),
    'model.backbone.type': 'SwinTransformer',
}
TABLE['mmdet/cascade_mask_rcnn_r50_ebv_1x'] = {
    **{place: value for place, value in COCO.items() if 'bbox_head' not in place},
    **{f'model.roi_head.bbox_head.{stage}.loss_cls': BOX_LOSS for stage in range(3)},
    'model.roi_head.stage_loss_weights': [1, 0.5, 0.25],
}
TABLE['mmdet/mask_rcnn_r50_ebv_1x_lvis'] = {
    **{place: value for place, value in COCO.items() if not place.startswith(PIPELINE)},
    'train_dataloader.dataset.type': 'ClassBalancedDataset',
    'train_dataloader.dataset.oversample_thr': 1e-3,
    'model.roi_head.bbox_head.num_classes': 1203,
    'model.roi_head.mask_head.num_classes': 1203,
    'model.roi_head.mask_head.type': 'FCNMaskHead',
    **ebv(1204, 1204),
}

ADE = {
    'batch': (4, 4),  # the paper's 16; the authors ran 8 GPUs
    'optim_wrapper.optimizer': dict(type='SGD', lr=0.01, momentum=0.9, weight_decay=5e-4),
    'optim_wrapper.paramwise_cfg': ABSENT,
    'model.data_preprocessor.size': [512, 512],
    'model.data_preprocessor.seg_pad_val': 255,
    'model.decode_head.num_classes': 150,
    'model.decode_head.loss_decode': BOX_LOSS,
    'model.auxiliary_head.loss_decode': {**BOX_LOSS, 'loss_weight': 0.4},
    'train_dataloader.dataset.type': 'ADE20KDataset',
    f'{PIPELINE}.2': dict(type='RandomResize', scale=[2048, 512], ratio_range=[0.5, 2.0], keep_ratio=True),
    f'{PIPELINE}.3': dict(type='RandomCrop', crop_size=[512, 512], cat_max_ratio=0.75),
    f'{PIPELINE}.4': dict(type='RandomFlip', prob=0.5),
    f'{PIPELINE}.5': dict(type='PhotoMetricDistortion'),
    'model.test_cfg.mode': 'whole',
    'tta_model': dict(type='SegTTAModel'),
    **ebv(150, 150),
}
for length in (80, 160):
    for depth in (18, 50):
        row = {**ADE, 'train_cfg.max_iters': 1000 * length, 'model.backbone.depth': depth}
        TABLE[f'mmseg/upernet_r{depth}_ebv_{length}k'] = row
    TABLE[f'mmseg/upernet_r18_fc_{length}k'] = {**TABLE[f'mmseg/upernet_r18_ebv_{length}k'], 'heads': set()}
TABLE['mmseg/upernet_swin_tiny_ebv_160k'] = {
    **ADE,
    'batch': (8, 2),
    'train_cfg.max_iters': 160000,
    'optim_wrapper.optimizer': dict(type='AdamW', lr=6e-5, betas=[0.9, 0.999], weight_decay=0.01),
    'optim_wrapper.paramwise_cfg': NO_DECAY,
}
TABLE['mmseg/fpn_r50_ebv_160k'] = {
    **ADE,
    'train_cfg.max_iters': 160000,
    'model.auxiliary_head': ABSENT,
    'model.auxiliary_head.loss_decode': ABSENT,
}


def at(config: object, place: str) -> object:
    """The value at a dotted place, ABSENT where there is nothing."""
    for key in place.split('.'):
        if isinstance(config, list):
            config = config[int(key)]
        else:
            config = (config or {}).get(key)
    return config


def test_every_config_has_its_row():
    assert sorted(TABLE) == CONFIGS


@pytest.mark.parametrize('name', CONFIGS)
def test_settings(name):
    config = plain(load(name).to_dict())
    row = dict(TABLE[name])
    gpus, images = row.pop('batch')
    assert config['train_dataloader']['batch_size'] == images
    if 'auto_scale_lr' in config:
        assert config['auto_scale_lr']['base_batch_size'] == gpus * images
        assert not config['auto_scale_lr'].get('enable')
    heads = {(*size_in_name(node['basis']), node.get('tau', 0.07)) for node in nodes_with('basis', config['model'])}
    assert heads == row.pop('heads')
    size = row.pop('test', None)
    if size:
        pipeline = [dict(type='LoadImageFromFile'), dict(type='ResizeCenterCrop', size=size), dict(type='PackInputs')]
        assert config['val_dataloader']['dataset']['pipeline'] == pipeline
        assert config['test_dataloader']['dataset'] == config['val_dataloader']['dataset']
    assert {place: at(config, place) for place in row} == row


@pytest.mark.parametrize('name', [n for n in CONFIGS if n.startswith('mmpretrain')])
def test_the_models_see_as_many_classes_as_the_data(name):
    config = load(name)
    assert config.data_preprocessor.num_classes == config.model.head.num_classes


def test_random_erasing_is_that_of_torchvision():
    default = {
        key: parameter.default
        for key, parameter in inspect.signature(torchvision.transforms.RandomErasing).parameters.items()
    }
    assert (ERASE[0]['min_area_ratio'], ERASE[0]['max_area_ratio']) == default['scale']
    assert tuple(ERASE[0]['aspect_range']) == default['ratio'] and default['value'] == 0
    # 0 after normalising is the mean before it, and images are BGR until then
    assert ERASE[0]['fill_color'] == A1['data_preprocessor.mean'][::-1]


@pytest.mark.parametrize('size', [224, 320])
def test_one_option_tests_at_another_resolution(size):
    config = load('mmpretrain/resnet50_ebv_a2_605e')
    config.merge_from_dict({'test_dataloader.dataset.pipeline.1.size': size})
    assert plain(config.test_dataloader.dataset.pipeline)[1] == dict(type='ResizeCenterCrop', size=size)
    assert plain(config.val_dataloader.dataset.pipeline)[1] == dict(type='ResizeCenterCrop', size=256)


def test_ten_crops_are_two_flips_of_five_positions():
    config = load('mmpretrain/resnet50_fc_a0')
    flips, crops, _ = plain(config.tta_pipeline)[2]['transforms']
    assert [flip['prob'] for flip in flips] == [0.0, 1.0]
    positions = ('top_left', 'top_right', 'bottom_left', 'bottom_right', 'center')
    assert crops == [dict(type='PositionCrop', crop_size=224, position=position) for position in positions]
    short_edge = dict(type='ResizeEdge', scale=256, edge='short', backend='pillow', interpolation='bilinear')
    assert plain(config.tta_pipeline)[1] == plain(config.test_dataloader.dataset.pipeline)[1] == short_edge
    assert plain(config.test_dataloader.dataset.pipeline)[2] == dict(type='CenterCrop', crop_size=224)


def test_a0_resizes_between_256_and_480_and_changes_colours():
    _, resize, crop, flip, lighting, _ = plain(load('mmpretrain/resnet50_fc_a0').train_dataloader.dataset.pipeline)
    assert [scale[1] for scale in resize['scale']] == [256, 480] and resize['keep_ratio']
    assert crop['crop_size'] == 224 and flip['prob'] == 0.5
    # eigenvectors have length 1 and are orthogonal; alpha is N(0, 0.1)
    rows = lighting['eigvec']
    for i in range(3):
        for j in range(3):
            assert sum(row[i] * row[j] for row in rows) == pytest.approx(float(i == j), abs=2e-3)
    assert lighting['alphastd'] == 0.1
