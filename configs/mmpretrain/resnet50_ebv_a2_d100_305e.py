_base_ = 'resnet50_fc_a2_305e.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/1000x100.safetensors', balanced_init=False))
