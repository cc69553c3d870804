# The paper does not tell this learning rate; of the two in A1 it is the one that suits the FC model.
_base_ = 'resnet50_fc_100k.py'

optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-3, weight_decay=2e-5, _delete_=True))
