_base_ = ['mmdet::_base_/models/mask-rcnn_r50_fpn.py', './common.py']
default_scope = 'mmdet'
data_root = 'data/demo/scenes'
metainfo = dict(classes=['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
max_iters = 260

model = dict(
    # A slim ResNet-18 that learns from scratch: nothing is frozen.
    backbone=dict(depth=18, base_channels=16, stem_channels=16, frozen_stages=-1, norm_eval=False, init_cfg=None),
    neck=dict(in_channels=[16, 32, 64, 128], out_channels=32, num_outs=4),
    rpn_head=dict(
        in_channels=32,
        feat_channels=32,
        anchor_generator=dict(strides=[4, 8, 16, 32]),
    ),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=32, roi_layer=dict(sampling_ratio=1)),
        bbox_head=dict(in_channels=32, fc_out_channels=128, num_classes=10),
        mask_roi_extractor=dict(out_channels=32, roi_layer=dict(sampling_ratio=1)),
        mask_head=dict(num_convs=2, in_channels=32, conv_out_channels=32, num_classes=10),
    ),
    train_cfg=dict(
        rpn=dict(sampler=dict(num=64)),
        rpn_proposal=dict(nms_pre=400, max_per_img=100),
        rcnn=dict(sampler=dict(num=32)),
    ),
    test_cfg=dict(rpn=dict(nms_pre=200, max_per_img=50), rcnn=dict(max_per_img=20)),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='Resize', scale=(96, 96)),
    dict(type='PackDetInputs'),
]
train_dataloader = dict(
    batch_size=16,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='CocoDataset',
        data_root=data_root,
        ann_file='train.json',
        data_prefix=dict(img='train/'),
        metainfo=metainfo,
        pipeline=train_pipeline,
    ),
)
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(96, 96)),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='PackDetInputs', meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor')),
]
val_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CocoDataset',
        data_root=data_root,
        ann_file='test.json',
        data_prefix=dict(img='test/'),
        metainfo=metainfo,
        test_mode=True,
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='CocoMetric', ann_file=f'{data_root}/test.json', metric=['bbox', 'segm'])
test_evaluator = val_evaluator

optim_wrapper = dict(optimizer=dict(lr=0.05, weight_decay=1e-4))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, end=20),
    dict(type='CosineAnnealingLR', eta_min=0, by_epoch=False, begin=20, end=max_iters),
]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=max_iters, val_interval=max_iters)
