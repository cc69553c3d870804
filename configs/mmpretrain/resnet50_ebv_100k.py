_base_ = 'resnet50_fc_100k.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/100000x5000.safetensors', tau=0.007, balanced_init=False))
