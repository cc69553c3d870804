_base_ = ['mmpretrain::_base_/models/swin_transformer/tiny_224.py', '_base_/imagenet_a1.py']

# The host's model brings label smoothing, Mixup, CutMix and more stochastic depth, which A1 does not have.
model = dict(
    backbone=dict(drop_path_rate=0.1),  # timm's default
    head=dict(loss=dict(type='CrossEntropyLoss', loss_weight=1.0, _delete_=True), topk=(1, 5)),
    train_cfg=dict(_delete_=True),
)
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-3, weight_decay=2e-5, _delete_=True))

# timm's Swin takes 224 x 224 only, also during validation.
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeCenterCrop', size=224),
    dict(type='PackInputs'),
]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
