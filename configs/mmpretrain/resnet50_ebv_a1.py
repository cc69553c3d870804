_base_ = 'resnet50_fc_a1.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/1000x1000.safetensors', balanced_init=False))
