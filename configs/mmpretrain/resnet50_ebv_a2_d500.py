_base_ = 'resnet50_fc_a2.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/1000x500.safetensors', balanced_init=False))
