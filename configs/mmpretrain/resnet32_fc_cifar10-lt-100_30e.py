# For two CPU cores: 30 epochs in place of 200, so the learning rate falls all the time, and the data are loaded in the
# training's own process (they are in memory).
_base_ = 'resnet32_fc_cifar10-lt-100.py'

model = dict(backbone=dict(channels_last=True))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=True, begin=0, end=1, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', by_epoch=True, begin=1, end=30, convert_to_iter_based=True),
]
train_cfg = dict(max_epochs=30, val_interval=5)
train_dataloader = dict(num_workers=0, persistent_workers=False)
val_dataloader = dict(num_workers=0, persistent_workers=False)
test_dataloader = dict(num_workers=0, persistent_workers=False)
default_hooks = dict(logger=dict(interval=20))
