_base_ = ['mmseg::_base_/models/fcn_unet_s5-d16.py', './runtime.py']
default_scope = 'mmseg'
data_root = 'data/demo/scenes'
metainfo = dict(classes=['background', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
max_iters = 300

norm_cfg = dict(type='BN', requires_grad=True)
model = dict(
    data_preprocessor=dict(size=(96, 96)),
    # A slim and shallow U-Net that learns from scratch.
    pretrained=None,
    backbone=dict(
        base_channels=12,
        num_stages=4,
        strides=(1, 1, 1, 1),
        enc_num_convs=(2, 2, 2, 2),
        dec_num_convs=(2, 2, 2),
        downsamples=(True, True, True),
        enc_dilations=(1, 1, 1, 1),
        dec_dilations=(1, 1, 1),
        norm_cfg=norm_cfg,
    ),
    decode_head=dict(in_channels=12, in_index=3, channels=12, num_classes=11, norm_cfg=norm_cfg),
    auxiliary_head=dict(in_channels=24, in_index=2, channels=24, num_classes=11, norm_cfg=norm_cfg),
    test_cfg=dict(mode='whole'),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    batch_size=16,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='BaseSegDataset',
        data_root=data_root,
        data_prefix=dict(img_path='train', seg_map_path='train_labels'),
        img_suffix='.png',
        metainfo=metainfo,
        pipeline=train_pipeline,
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
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator

optim_wrapper = dict(optimizer=dict(type='AdamW', lr=2e-3, weight_decay=0.05))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, end=40),
    dict(type='CosineAnnealingLR', eta_min=0, by_epoch=False, begin=40, end=max_iters),
]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=max_iters, val_interval=max_iters)
