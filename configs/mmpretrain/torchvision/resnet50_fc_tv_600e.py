# torchvision's step "+ CutMix", which the paper quotes as 79.51: 600 epochs, weight decay 1e-4.
_base_ = '../resnet50_fc_a2.py'

optim_wrapper = dict(optimizer=dict(weight_decay=1e-4))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=True, begin=0, end=6),
    dict(type='CosineAnnealingLR', T_max=595, by_epoch=True, begin=5, end=600),
]
train_cfg = dict(max_epochs=600)

# torchvision cuts 224 pixels out of 256; the paper's own rows resize to the size that they cut.
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=256, edge='short', backend='pillow', interpolation='bilinear'),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
