# Setting A2 of the paper: A1, label smoothing, and Mixup or CutMix on every batch.
_base_ = 'swin_tiny_fc_a1.py'

model = dict(
    head=dict(loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original', _delete_=True)),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2), dict(type='CutMix', alpha=1.0)]),
)
