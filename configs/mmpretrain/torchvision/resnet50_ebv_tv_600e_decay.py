_base_ = 'resnet50_fc_tv_600e_decay.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/1000x1000.safetensors', balanced_init=False))
