# A net without batch norm or chance, on which two processes must do the same as one with the doubled batch.
custom_imports = dict(imports=['ebv_mm', 'mean_loss_hook'], allow_failed_imports=False)
default_scope = 'mmpretrain'

model = dict(
    type='ImageClassifier',
    backbone=dict(type='LeNet5'),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='EBVClsHead', num_classes=3, in_channels=120, basis='data/ebv/3x5.safetensors'),
    data_preprocessor=dict(mean=[127.5], std=[64.0]),
)
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CustomDataset',
        data_prefix='images',
        ann_file='labels.txt',
        pipeline=[
            dict(type='LoadImageFromFile', color_type='grayscale'),
            dict(type='Resize', scale=(32, 32)),
            dict(type='PackInputs'),
        ],
    ),
)
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=1e-4))
train_cfg = dict(by_epoch=True, max_epochs=4)
custom_hooks = [dict(type='MeanLossHook'), dict(type='SyncBuffersHook')]
randomness = dict(seed=0)
