# UperNet of the paper, shrunk: a slim ResNet-18 on 4 scenes with 4 classes.
_base_ = '../../../configs/mmseg/upernet_r50_ebv_80k.py'

basis = 'data/ebv/4x4.safetensors'
head = dict(num_classes=4, channels=16, basis=basis)
model = dict(
    data_preprocessor=dict(size=(64, 64)),
    pretrained=None,
    backbone=dict(depth=18, base_channels=8, stem_channels=8),
    decode_head=dict(head, in_channels=[8, 16, 32, 64]),
    auxiliary_head=dict(head, in_channels=32),
)
dataset = dict(
    _delete_=True,
    type='BaseSegDataset',
    data_prefix=dict(img_path='images', seg_map_path='label_maps'),
    img_suffix='.png',
    seg_map_suffix='.png',
    metainfo=dict(classes=('background', 'a', 'b', 'c'), palette=[[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]]),
)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomCrop', crop_size=(64, 64)),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackSegInputs'),
]
test_pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
train_dataloader = dict(
    batch_size=2, num_workers=0, persistent_workers=False, dataset=dict(dataset, pipeline=train_pipeline)
)
val_dataloader = dict(num_workers=0, persistent_workers=False, dataset=dict(dataset, pipeline=test_pipeline))
test_dataloader = val_dataloader
train_cfg = dict(max_iters=2, val_interval=2)
default_hooks = dict(checkpoint=dict(interval=2))
