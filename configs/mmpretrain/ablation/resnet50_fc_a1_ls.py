# "+ label smoothing": A2 without Mixup and CutMix.
_base_ = '../resnet50_fc_a2.py'

model = dict(train_cfg=dict(_delete_=True))
