# A one-stage detector on the slice of VOC; see docs/results.md.
_base_ = '../../configs/mmdet/mask_rcnn_r50_fc_voc.py'

max_iters = 1000
data_root = 'data/voc_mini/'
model = dict(
    _delete_=True,
    type='RetinaNet',
    data_preprocessor=dict(
        type='DetDataPreprocessor', mean=[103.939, 116.779, 123.68], std=[1.0, 1.0, 1.0], bgr_to_rgb=False,
        pad_size_divisor=32),
    backbone=dict(
        type='ResNet', depth=50, num_stages=4, out_indices=(0, 1, 2, 3), frozen_stages=3,
        norm_cfg=dict(type='BN', requires_grad=False), norm_eval=True, style='caffe',
        init_cfg=dict(type='Pretrained', checkpoint='data/resnet50_caffe.pth')),
    neck=dict(
        type='FPN', in_channels=[256, 512, 1024, 2048], out_channels=128, start_level=1, add_extra_convs='on_input',
        num_outs=5),
    # Half the width and depth of the host's.
    bbox_head=dict(
        type='RetinaHead', num_classes=20, in_channels=128, stacked_convs=2, feat_channels=128,
        anchor_generator=dict(
            type='AnchorGenerator', octave_base_scale=4, scales_per_octave=3, ratios=[0.5, 1.0, 2.0],
            strides=[8, 16, 32, 64, 128]),
        bbox_coder=dict(type='DeltaXYWHBBoxCoder', target_means=[0.0] * 4, target_stds=[1.0] * 4),
        loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=1.0),
        loss_bbox=dict(type='L1Loss', loss_weight=1.0)),
    train_cfg=dict(
        assigner=dict(type='MaxIoUAssigner', pos_iou_thr=0.5, neg_iou_thr=0.4, min_pos_iou=0, ignore_iof_thr=-1),
        sampler=dict(type='PseudoSampler'), allowed_border=-1, pos_weight=-1, debug=False),
    test_cfg=dict(nms_pre=1000, min_bbox_size=0, score_thr=0.05, nms=dict(type='nms', iou_threshold=0.5),
                  max_per_img=100),
)  # fmt: skip
val_evaluator = dict(type='CocoMetric', ann_file=data_root + 'annotations/instances_val.json', metric='bbox')
test_evaluator = val_evaluator

param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=100),
    dict(type='MultiStepLR', by_epoch=False, milestones=[700, 900], gamma=0.1),
]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=max_iters, val_interval=max_iters // 2)
