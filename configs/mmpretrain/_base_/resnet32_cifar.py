# Long-tailed CIFAR, one GPU x 128 images, 200 epochs; a config adds the data and the number of classes.
_base_ = 'mmpretrain::_base_/default_runtime.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

model = dict(
    type='ImageClassifier',
    backbone=dict(type='CIFARResNet', depth=32),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', in_channels=64, init_cfg=None, loss=dict(type='CrossEntropyLoss', loss_weight=1.0)),
)

# The paper tells momentum, weight decay, epochs and batch; learning rate and schedule are those of Cao et al. (2019),
# whose protocol it follows.
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=5e-4))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.2, by_epoch=True, begin=0, end=5),
    dict(type='MultiStepLR', by_epoch=True, milestones=[160, 180], gamma=0.01),
]
train_cfg = dict(by_epoch=True, max_epochs=200, val_interval=1)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=128)

# Two files: the host removes the oldest before it has written the newest.
default_hooks = dict(checkpoint=dict(max_keep_ckpts=2, save_best='accuracy/top1'))
randomness = dict(seed=0)  # ours: the authors' is not known
