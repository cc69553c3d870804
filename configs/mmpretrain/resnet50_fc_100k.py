# 100,000 classes, 12 images each to train and 6 to test, 8 GPUs x 128 images, setting A1, pretrained on ImageNet-1K.
# train.txt and val.txt have a line `folder/name.jpg label` for each image, labels from 0 to 99999;
# `python tools/list_images.py data/inat100k` writes them for a downloaded copy of any usual layout, and counts it.
_base_ = 'resnet50_fc_a1.py'

model = dict(
    backbone=dict(init_cfg=dict(type='Pretrained', checkpoint='torchvision://resnet50')),
    head=dict(num_classes=100000),
)
data_preprocessor = dict(num_classes=100000)

train_dataloader = dict(
    dataset=dict(
        type='CustomDataset',
        data_root='data/inat100k',
        ann_file='train.txt',
        pipeline=_base_.train_pipeline,
        _delete_=True,
    )
)
val_dataloader = dict(
    dataset=dict(
        type='CustomDataset',
        data_root='data/inat100k',
        ann_file='val.txt',
        pipeline=_base_.test_pipeline,
        _delete_=True,
    )
)
test_dataloader = val_dataloader

# The host's accuracy keeps all scores to the end: 240 GB here.
val_evaluator = dict(type='StreamingAccuracy')
test_evaluator = val_evaluator
