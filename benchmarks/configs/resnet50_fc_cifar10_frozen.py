# FC on the features of a frozen ImageNet ResNet-50, 2,000 images of CIFAR-10; docs/convert.md converts it.
_base_ = ['mmpretrain::_base_/datasets/cifar10_bs16.py', 'mmpretrain::_base_/default_runtime.py']
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

# CIFAR's images are RGB, the backbone's BGR
data_preprocessor = dict(num_classes=10, mean=[103.939, 116.779, 123.68], std=[1.0, 1.0, 1.0], to_rgb=True)
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='ResNet', depth=50, num_stages=4, out_indices=(3,), style='caffe', frozen_stages=4, norm_eval=True,
        init_cfg=dict(type='Pretrained', checkpoint='data/resnet50_caffe.pth')),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=10, in_channels=2048, loss=dict(type='CrossEntropyLoss')),
)  # fmt: skip
pipeline = [dict(type='Resize', scale=96), dict(type='PackInputs')]
images = dict(type='LongTailCIFAR10', imbalance=1, check_md5=False, pipeline=pipeline)
loader = dict(batch_size=50, num_workers=0, persistent_workers=False)
train_dataloader = dict(**loader, dataset=dict(**images, indices=2000))
val_dataloader = dict(**loader, dataset=dict(**images, indices=1000))
test_dataloader = val_dataloader

optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.01, momentum=0.9, weight_decay=1e-4))
param_scheduler = dict(type='CosineAnnealingLR', by_epoch=True, begin=0, end=2, convert_to_iter_based=True)
train_cfg = dict(by_epoch=True, max_epochs=2, val_interval=2)
val_cfg = dict()
test_cfg = dict()
val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
default_hooks = dict(logger=dict(interval=10))
randomness = dict(seed=0)
