_base_ = ['mmpretrain::_base_/models/resnet50.py', '_base_/imagenet_a1.py']

# init_cfg=None leaves torch's own initialisation, as in the authors' runs.
model = dict(head=dict(init_cfg=None))
