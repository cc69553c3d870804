_base_ = 'resnet50_fc_inat2018_plain.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/8142x8142.safetensors', tau=0.02, balanced_init=False))
