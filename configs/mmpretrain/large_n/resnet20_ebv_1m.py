# A million classes on any machine: a small ResNet on random images, Kerdock set in d = 4096 dimensions (89.1 degrees).
# It shows the cost of the head; there is nothing to learn.
_base_ = 'mmpretrain::_base_/default_runtime.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

num_classes = 1000000
model = dict(
    type='ImageClassifier',
    backbone=dict(type='CIFARResNet', depth=20),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='EBVClsHead',
        num_classes=num_classes,
        in_channels=64,
        basis=dict(num_classes=num_classes, dim=4096, method='kerdock', structured=True),
        balanced_init=False,
        tau=0.0098,
        predict_topk=5,
    ),
)
data_preprocessor = dict(num_classes=num_classes, mean=[127.5, 127.5, 127.5], std=[64.0, 64.0, 64.0])

train_dataloader = dict(
    batch_size=32,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(type='RandomImages', num_images=320, num_classes=num_classes, pipeline=[dict(type='PackInputs')]),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='RandomImages', num_images=64, num_classes=num_classes, pipeline=[dict(type='PackInputs')]),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='StreamingAccuracy', topk=(1, 5))
test_evaluator = val_evaluator

optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9))
train_cfg = dict(by_epoch=True, max_epochs=1, val_interval=1)
val_cfg = dict()
test_cfg = dict()
