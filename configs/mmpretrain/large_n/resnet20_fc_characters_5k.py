# For one machine: 5,000 characters that have at least eight training images each.
_base_ = '../_base_/characters.py'

num_classes = 5000
max_iters = 2000
model = dict(head=dict(num_classes=num_classes))
data_preprocessor = dict(num_classes=num_classes)
train_dataloader = dict(dataset=dict(num_classes=num_classes, min_train=8))
val_dataloader = dict(dataset=dict(num_classes=num_classes, min_train=8))
test_dataloader = val_dataloader
train_cfg = dict(max_iters=max_iters, val_interval=500)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=100),
    dict(type='CosineAnnealingLR', by_epoch=False, begin=100, end=max_iters),
]
