# Setting A0 of the paper: He et al. (2016), 8 GPUs x 32 images, 600,000 iterations.
# Ten-crop testing by --tta; without it a single crop of 224 x 224.
_base_ = [
    'mmpretrain::_base_/models/resnet50.py',
    'mmpretrain::_base_/datasets/imagenet_bs32.py',
    'mmpretrain::_base_/default_runtime.py',
]
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

train_pipeline = [
    # float, because the colour augmentation would wrap around in 8 bits
    dict(type='LoadImageFromFile', to_float32=True),
    # the short edge is uniform in [256, 480]: nothing is so long that the first number matters
    dict(type='RandomResize', scale=[(100000, 256), (100000, 480)], resize_type='Resize', keep_ratio=True),
    dict(type='RandomCrop', crop_size=224),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    # the principal components of ImageNet's colours (Krizhevsky et al., 2012); rows in BGR
    dict(
        type='Lighting',
        eigval=[55.4625, 4.7940, 1.1475],
        eigvec=[[-0.5836, -0.6948, 0.4203], [-0.5808, -0.0045, -0.8140], [-0.5675, 0.7192, 0.4009]],
        alphastd=0.1,
        to_rgb=False,
    ),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=256, edge='short', backend='pillow', interpolation='bilinear'),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
tta_model = dict(type='AverageClsScoreTTA')
tta_pipeline = [
    *test_pipeline[:2],
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)],
            [
                dict(type='PositionCrop', crop_size=224, position='top_left'),
                dict(type='PositionCrop', crop_size=224, position='top_right'),
                dict(type='PositionCrop', crop_size=224, position='bottom_left'),
                dict(type='PositionCrop', crop_size=224, position='bottom_right'),
                dict(type='PositionCrop', crop_size=224, position='center'),
            ],
            [dict(type='PackInputs')],
        ],
    ),
]
train_dataloader = dict(
    batch_size=32, sampler=dict(type='InfiniteSampler', shuffle=True), dataset=dict(pipeline=train_pipeline)
)
val_dataloader = dict(batch_size=32, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

# He et al. divide the learning rate by 10 "when the error plateaus"; every 150,000 iterations is our reading of it.
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=1e-4))
param_scheduler = dict(type='MultiStepLR', by_epoch=False, milestones=[150000, 300000, 450000], gamma=0.1)
train_cfg = dict(by_epoch=False, max_iters=600000, val_interval=5000)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=256)

default_hooks = dict(
    logger=dict(log_metric_by_epoch=False),
    checkpoint=dict(by_epoch=False, interval=5000, max_keep_ckpts=2, save_best='accuracy/top1'),
)
log_processor = dict(by_epoch=False)
randomness = dict(seed=42)  # that of A1 and A2: nobody knows He et al.'s
