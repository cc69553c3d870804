_base_ = 'resnet32_fc_cifar100-lt-100.py'

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/100x100.safetensors', balanced_init=False))
