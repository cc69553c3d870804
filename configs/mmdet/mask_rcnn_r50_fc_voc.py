# A slice of VOC 2012, small enough for one CPU core; see docs/results.md.
_base_ = 'mmdet::mask_rcnn/mask-rcnn_r50-caffe_fpn_1x_coco.py'

data_root = 'data/voc_mini/'
metainfo = dict(
    classes=(
        'aeroplane', 'bicycle', 'bird', 'boat', 'bottle', 'bus', 'car', 'cat', 'chair', 'cow', 'diningtable', 'dog',
        'horse', 'motorbike', 'person', 'pottedplant', 'sheep', 'sofa', 'train', 'tvmonitor',
    )
)  # fmt: skip
scale = (320, 320)

model = dict(
    data_preprocessor=dict(mean=[103.939, 116.779, 123.68]),
    backbone=dict(frozen_stages=3, init_cfg=dict(checkpoint='data/resnet50_caffe.pth')),
    # Half the width of the host's.
    neck=dict(out_channels=128),
    rpn_head=dict(in_channels=128, feat_channels=128),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=128),
        bbox_head=dict(in_channels=128, num_classes=20),
        mask_roi_extractor=dict(out_channels=128),
        mask_head=dict(in_channels=128, conv_out_channels=128, num_classes=20),
    ),
    # Images of 320 pixels with two or three objects need fewer boxes.
    train_cfg=dict(rpn_proposal=dict(nms_pre=500, max_per_img=200), rcnn=dict(sampler=dict(num=64))),
    test_cfg=dict(rpn=dict(nms_pre=500, max_per_img=200)),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=scale, keep_ratio=True),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='PackDetInputs', meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor')),
]
images = dict(data_root=data_root, data_prefix=dict(img='JPEGImages/'), metainfo=metainfo)
train_dataloader = dict(
    batch_size=2,
    num_workers=0,
    persistent_workers=False,
    sampler=dict(type='InfiniteSampler'),
    dataset=dict(ann_file='annotations/instances_train.json', pipeline=train_pipeline, **images),
)
val_dataloader = dict(
    num_workers=0,
    persistent_workers=False,
    dataset=dict(ann_file='annotations/instances_val.json', pipeline=test_pipeline, **images),
)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file=data_root + 'annotations/instances_val.json')
test_evaluator = val_evaluator

# The first gradients of EBV are large, because the projection starts tiny and is normalised.
optim_wrapper = dict(optimizer=dict(lr=0.005), clip_grad=dict(max_norm=35))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=50),
    dict(type='MultiStepLR', by_epoch=False, milestones=[350, 450], gamma=0.1),
]
train_cfg = dict(_delete_=True, type='IterBasedTrainLoop', max_iters=500, val_interval=250)
default_hooks = dict(
    logger=dict(interval=10, log_metric_by_epoch=False),
    checkpoint=dict(by_epoch=False, interval=50, max_keep_ckpts=2),
)
log_processor = dict(by_epoch=False, window_size=10)
randomness = dict(seed=0)
auto_scale_lr = dict(base_batch_size=2)
