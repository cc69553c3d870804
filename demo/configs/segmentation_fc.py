_base_ = ['mmseg::_base_/models/upernet_r50.py', './common.py']
default_scope = 'mmseg'
data_root = 'data/demo/scenes'
metainfo = dict(classes=['background', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
max_iters = 450

norm_cfg = dict(type='BN', requires_grad=True)
model = dict(
    data_preprocessor=dict(size=(96, 96)),
    # A slim ResNet-18 that learns from scratch, at most eight times coarser than the scene.
    pretrained=None,
    backbone=dict(
        depth=18, stem_channels=16, base_channels=16, strides=(1, 2, 1, 1), dilations=(1, 1, 1, 2), norm_cfg=norm_cfg
    ),
    # Strokes cover a fifth of a scene: without weights, telling them from the background takes most of the gradient.
    # The auxiliary head, whose borders do not matter, weighs the digits most.
    decode_head=dict(
        in_channels=[16, 32, 64, 128],
        channels=32,
        num_classes=11,
        norm_cfg=norm_cfg,
        loss_decode=dict(class_weight=[0.25, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
    ),
    auxiliary_head=dict(
        in_channels=64,
        channels=32,
        num_classes=11,
        norm_cfg=norm_cfg,
        loss_decode=dict(class_weight=[0.1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], loss_weight=1.0),
    ),
)

pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    batch_size=8,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='BaseSegDataset',
        data_root=data_root,
        data_prefix=dict(img_path='train', seg_map_path='train_labels'),
        img_suffix='.png',
        metainfo=metainfo,
        pipeline=pipeline,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='BaseSegDataset',
        data_root=data_root,
        data_prefix=dict(img_path='test', seg_map_path='test_labels'),
        img_suffix='.png',
        metainfo=metainfo,
        test_mode=True,
        pipeline=pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator

param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, end=20),
    dict(type='CosineAnnealingLR', eta_min=0, by_epoch=False, begin=20, end=max_iters),
]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=max_iters, val_interval=max_iters)
