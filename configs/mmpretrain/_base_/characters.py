# Written characters (docs/large_n.md), each tested in a font family in which it was not trained.
# `python -m ebv_mm.characters data/characters` makes the data.
_base_ = 'mmpretrain::_base_/default_runtime.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

num_classes = 80000
data_root = 'data/characters'
model = dict(
    type='ImageClassifier',
    backbone=dict(type='CIFARResNet', depth=20, in_channels=1),
    # the hidden layer, for FC as for EBV; it takes the 64 x 8 x 8 features with their places
    neck=dict(
        type='LinearNeck', in_channels=4096, out_channels=4096, norm_cfg=dict(type='BN1d'), act_cfg=dict(type='ReLU')
    ),
    head=dict(
        type='LinearClsHead', num_classes=num_classes, in_channels=4096, loss=dict(type='CrossEntropyLoss'), topk=(1, 5)
    ),
)
data_preprocessor = dict(num_classes=num_classes, mean=[64.0], std=[64.0])

train_dataloader = dict(
    batch_size=256,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        type='WrittenCharacters',
        data_root=data_root,
        split='train',
        num_classes=num_classes,
        pipeline=[dict(type='DistortCharacter'), dict(type='PackInputs')],
    ),
)
val_dataloader = dict(
    batch_size=256,
    num_workers=2,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='WrittenCharacters',
        data_root=data_root,
        split='test',
        num_classes=num_classes,
        pipeline=[dict(type='PackInputs')],
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='StreamingAccuracy', topk=(1, 5))
test_evaluator = val_evaluator

# some ten epochs
max_iters = 40000
train_cfg = dict(by_epoch=False, max_iters=max_iters, val_interval=4000)
val_cfg = dict()
test_cfg = dict()
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=0.003, weight_decay=0.02))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=1000),
    dict(type='CosineAnnealingLR', by_epoch=False, begin=1000, end=max_iters),
]
default_hooks = dict(
    logger=dict(interval=50),
    checkpoint=dict(type='CheckpointHook', interval=2000, by_epoch=False, max_keep_ckpts=2),
)
log_processor = dict(by_epoch=False)
