# A tenth of 10,000 characters, d = N on a bottleneck of 256, tau above the advice for classifying (docs/large_n.md);
# tools/class_means.py then classifies all of them.
_base_ = './resnet8_fc_characters.py'

num_classes = 1000
max_iters = 869  # an epoch of all 10,000
basis = dict(num_classes=num_classes, dim=num_classes, method='orthonormal', rotate=False)
norm_cfg = dict(type='BN1d', affine=False)
model = dict(
    neck=dict(out_channels=256, act_cfg=None),
    head=dict(
        type='EBVClsHead',
        num_classes=num_classes,
        in_channels=256,
        basis=basis,
        tau=0.035,
        norm_cfg=norm_cfg,
        predict_topk=5,
    ),
)
data_preprocessor = dict(num_classes=num_classes)
train_dataloader = dict(dataset=dict(num_classes=num_classes))
val_dataloader = dict(dataset=dict(num_classes=num_classes, every=1))
test_dataloader = val_dataloader
train_cfg = dict(max_iters=max_iters, val_interval=87)
optim_wrapper = dict(optimizer=dict(lr=0.01))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=86),
    dict(type='CosineAnnealingLR', by_epoch=False, begin=86, end=max_iters),
]
default_hooks = dict(checkpoint=dict(interval=max_iters))
