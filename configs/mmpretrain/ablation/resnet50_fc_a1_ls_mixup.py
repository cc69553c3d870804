# "+ Mixup": A2 without CutMix.
_base_ = '../resnet50_fc_a2.py'

model = dict(train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2)]))
