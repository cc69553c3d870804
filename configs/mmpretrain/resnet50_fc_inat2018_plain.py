# The paper's third row, 61.7 "without TrivialAugment and LR optimizations". It also stands in Kang et al. (2020), whose
# settings these are: 8 GPUs x 64 images, 90 epochs, a cosine from .2 without warm-up, weight decay 1e-4.
_base_ = 'resnet50_fc_inat2018.py'

off = ('NumpyToPIL', 'torchvision/TrivialAugmentWide', 'PILToNumpy', 'RandomErasing')
train_pipeline = [step for step in _base_.train_pipeline if step['type'] not in off]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=256, edge='short', backend='pillow', interpolation='bilinear'),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
train_dataloader = dict(batch_size=64, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.2, weight_decay=1e-4))
param_scheduler = dict(_delete_=True, type='CosineAnnealingLR', T_max=90, by_epoch=True, begin=0, end=90)
train_cfg = dict(max_epochs=90)
auto_scale_lr = dict(base_batch_size=512)
