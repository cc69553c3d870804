_base_ = 'resnet50_fc_a2.py'

param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=True, begin=0, end=6),
    dict(type='CosineAnnealingLR', T_max=600, by_epoch=True, begin=5, end=605),
]
train_cfg = dict(max_epochs=605)
