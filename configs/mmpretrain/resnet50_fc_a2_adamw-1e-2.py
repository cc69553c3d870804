# The paper: "NaN". Kept as the twin of resnet50_ebv_a2_adamw-1e-2.py.
_base_ = 'resnet50_fc_a2.py'

optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-2, weight_decay=2e-5, _delete_=True))
