_base_ = 'resnet50_fc_a2.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/1000x300.safetensors', balanced_init=False))
