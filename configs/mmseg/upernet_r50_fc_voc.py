# A slice of VOC 2012, small enough for one CPU core; see docs/results.md.
_base_ = [
    'mmseg::_base_/models/upernet_r50.py',
    'mmseg::_base_/datasets/pascal_voc12.py',
    'mmseg::_base_/default_runtime.py',
    'mmseg::_base_/schedules/schedule_20k.py',
]

crop_size = (256, 256)
scale = (1280, 320)  # the short edge has 320 pixels

model = dict(
    data_preprocessor=dict(mean=[103.939, 116.779, 123.68], std=[1.0, 1.0, 1.0], bgr_to_rgb=False, size=crop_size),
    pretrained=None,
    backbone=dict(
        type='ResNet',
        style='caffe',
        frozen_stages=3,
        norm_cfg=dict(requires_grad=False),
        norm_eval=True,
        init_cfg=dict(type='Pretrained', checkpoint='data/resnet50_caffe.pth'),
    ),
    # A quarter of the width of the host's, resp. half of it.
    decode_head=dict(channels=128, num_classes=21),
    auxiliary_head=dict(channels=128, num_classes=21),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=scale, ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(data_root='data/voc_mini', ann_file='ImageSets/train.txt', pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=0,
    persistent_workers=False,
    dataset=dict(data_root='data/voc_mini', ann_file='ImageSets/val.txt', pipeline=test_pipeline),
)
test_dataloader = val_dataloader

# The first gradients of EBV are large, because the projection starts tiny and is normalised.
optim_wrapper = dict(clip_grad=dict(_delete_=True, max_norm=10))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=40),
    dict(type='PolyLR', eta_min=1e-4, power=0.9, by_epoch=False, begin=40, end=400),
]
train_cfg = dict(max_iters=400, val_interval=200)
default_hooks = dict(logger=dict(interval=10), checkpoint=dict(interval=50, max_keep_ckpts=2))
log_processor = dict(window_size=10)
randomness = dict(seed=0)
