_base_ = ['mmpretrain::_base_/models/resnet18_cifar.py', './common.py']
default_scope = 'mmpretrain'
data_root = 'data/demo/digits'
classes = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']
max_iters = 300

model = dict(
    data_preprocessor=dict(mean=[128, 128, 128], std=[64, 64, 64]),
    # A slim ResNet-18 that learns from scratch.
    backbone=dict(stem_channels=16, base_channels=16),
    head=dict(in_channels=128, topk=(1,)),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=16, interpolation='bicubic'),
    dict(type='RandomCrop', crop_size=16, padding=2),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=16, interpolation='bicubic'),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    batch_size=64,
    num_workers=0,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        ann_file='train.txt',
        data_prefix='train',
        classes=classes,
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=64,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        ann_file='test.txt',
        data_prefix='test',
        classes=classes,
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator

param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, end=20),
    dict(type='CosineAnnealingLR', eta_min=0, by_epoch=False, begin=20, end=max_iters),
]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=max_iters, val_interval=max_iters)
