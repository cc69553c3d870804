_base_ = 'resnet50_fc_a2.py'

optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-3, weight_decay=2e-5, _delete_=True))
