# Setting A1 of the paper: ImageNet-1K, 8 GPUs x 128 images, 105 epochs, SGD, mixed precision.
# Test a checkpoint at another resolution: --cfg-options test_dataloader.dataset.pipeline.1.size=320
_base_ = ['mmpretrain::_base_/datasets/imagenet_bs32.py', 'mmpretrain::_base_/default_runtime.py']
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=224, backend='pillow', interpolation='bilinear'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='NumpyToPIL', to_rgb=True),
    dict(type='torchvision/TrivialAugmentWide', interpolation='bilinear'),
    dict(type='PILToNumpy', to_bgr=True),
    # torchvision's defaults; it erases to 0 after normalising, hence to the mean before (here in BGR)
    dict(
        type='RandomErasing',
        erase_prob=0.1,
        min_area_ratio=0.02,
        max_area_ratio=0.33,
        aspect_range=(0.3, 3.3),
        mode='const',
        fill_color=[103.53, 116.28, 123.675],
    ),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeCenterCrop', size=256),
    dict(type='PackInputs'),
]
train_dataloader = dict(batch_size=128, num_workers=8, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=128, num_workers=8, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

# Weight decay on all parameters, norms included. mmengine's warm-up reaches its end one step before `end`, so that
# end=6 gives a full step from .01 to 1 in each of the 5 epochs; cosine takes over at the same point.
optim_wrapper = dict(type='AmpOptimWrapper', optimizer=dict(type='SGD', lr=0.5, momentum=0.9, weight_decay=2e-5))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=True, begin=0, end=6),
    dict(type='CosineAnnealingLR', T_max=100, by_epoch=True, begin=5, end=105),
]
train_cfg = dict(by_epoch=True, max_epochs=105, val_interval=1)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=1024)

# The paper reports the best epoch. Two files: the host removes the oldest before it has written the newest.
default_hooks = dict(checkpoint=dict(max_keep_ckpts=2, save_best='accuracy/top1'))
# Each GPU draws its own Mixup and CutMix.
randomness = dict(seed=42, diff_rank_seed=True)
