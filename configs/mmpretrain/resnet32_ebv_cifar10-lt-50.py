_base_ = 'resnet32_fc_cifar10-lt-50.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/10x10.safetensors', balanced_init=False))
