# A one-stage detector on the demo's scenes of digits, from scratch; python -m ebv_mm.conversion makes its EBV twin.
_base_ = '../../demo/configs/detection_fc.py'
data_root = 'data/demo/scenes'
max_iters = 200

model = dict(
    _delete_=True,
    type='RetinaNet',
    data_preprocessor=dict(
        type='DetDataPreprocessor', mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], bgr_to_rgb=True,
        pad_size_divisor=32),
    backbone=dict(
        type='ResNet', depth=18, base_channels=16, stem_channels=16, num_stages=4, out_indices=(0, 1, 2, 3),
        frozen_stages=-1, norm_cfg=dict(type='BN', requires_grad=True), norm_eval=False, style='pytorch'),
    neck=dict(type='FPN', in_channels=[16, 32, 64, 128], out_channels=32, start_level=0, num_outs=4),
    bbox_head=dict(
        type='RetinaHead', num_classes=10, in_channels=32, stacked_convs=2, feat_channels=32,
        anchor_generator=dict(
            type='AnchorGenerator', octave_base_scale=4, scales_per_octave=1, ratios=[0.5, 1.0, 2.0],
            strides=[4, 8, 16, 32]),
        bbox_coder=dict(type='DeltaXYWHBBoxCoder', target_means=[0.0] * 4, target_stds=[1.0] * 4),
        loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=1.0),
        loss_bbox=dict(type='L1Loss', loss_weight=1.0)),
    train_cfg=dict(
        assigner=dict(type='MaxIoUAssigner', pos_iou_thr=0.5, neg_iou_thr=0.4, min_pos_iou=0, ignore_iof_thr=-1),
        sampler=dict(type='PseudoSampler'), allowed_border=-1, pos_weight=-1, debug=False),
    test_cfg=dict(nms_pre=200, min_bbox_size=0, score_thr=0.05, nms=dict(type='nms', iou_threshold=0.5),
                  max_per_img=20),
)  # fmt: skip
val_evaluator = dict(type='CocoMetric', ann_file=f'{data_root}/test.json', metric='bbox')
test_evaluator = val_evaluator
optim_wrapper = dict(optimizer=dict(lr=0.02))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, end=20),
    dict(type='CosineAnnealingLR', eta_min=0, by_epoch=False, begin=20, end=max_iters),
]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=max_iters, val_interval=max_iters)
