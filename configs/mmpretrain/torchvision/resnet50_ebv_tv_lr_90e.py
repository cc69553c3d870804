_base_ = 'resnet50_fc_tv_lr_90e.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/1000x1000.safetensors', balanced_init=False))
