# What benchmarks/comparison.py begins with and varies: a backbone of 11 M multiply-adds and 2,048 features, so that the
# classifier matters, and everything in one process, so that its seconds are all there is.
_base_ = '../_base_/characters.py'

num_classes = 10000
max_iters = 2600
model = dict(
    backbone=dict(depth=8, base_channels=32, strides=(2, 2, 2), channels_last=True, flat=True),
    neck=dict(in_channels=2048),
    head=dict(num_classes=num_classes),
)
data_preprocessor = dict(num_classes=num_classes)
train_dataloader = dict(num_workers=0, persistent_workers=False, dataset=dict(num_classes=num_classes, min_train=8))
val_dataloader = dict(num_workers=0, dataset=dict(num_classes=num_classes, min_train=8, every=2))
test_dataloader = val_dataloader
train_cfg = dict(max_iters=max_iters, val_interval=260)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=100),
    dict(type='CosineAnnealingLR', by_epoch=False, begin=100, end=max_iters),
]
default_hooks = dict(checkpoint=dict(interval=260, max_keep_ckpts=1))
