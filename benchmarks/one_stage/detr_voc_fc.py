# A detector of queries on the slice of VOC, for its first losses: it needs more images to find anything.
_base_ = 'retinanet_voc_fc.py'

max_iters = 200
model = dict(
    _delete_=True,
    type='DETR',
    num_queries=100,
    data_preprocessor=dict(
        type='DetDataPreprocessor', mean=[103.939, 116.779, 123.68], std=[1.0, 1.0, 1.0], bgr_to_rgb=False,
        pad_size_divisor=1),
    backbone=dict(
        type='ResNet', depth=50, num_stages=4, out_indices=(3,), frozen_stages=3,
        norm_cfg=dict(type='BN', requires_grad=False), norm_eval=True, style='caffe',
        init_cfg=dict(type='Pretrained', checkpoint='data/resnet50_caffe.pth')),
    neck=dict(
        type='ChannelMapper', in_channels=[2048], kernel_size=1, out_channels=256, act_cfg=None, norm_cfg=None,
        num_outs=1),
    encoder=dict(num_layers=6, layer_cfg=dict(
        self_attn_cfg=dict(embed_dims=256, num_heads=8, dropout=0.1, batch_first=True),
        ffn_cfg=dict(embed_dims=256, feedforward_channels=2048, num_fcs=2, ffn_drop=0.1))),
    decoder=dict(num_layers=6, return_intermediate=True, layer_cfg=dict(
        self_attn_cfg=dict(embed_dims=256, num_heads=8, dropout=0.1, batch_first=True),
        cross_attn_cfg=dict(embed_dims=256, num_heads=8, dropout=0.1, batch_first=True),
        ffn_cfg=dict(embed_dims=256, feedforward_channels=2048, num_fcs=2, ffn_drop=0.1))),
    positional_encoding=dict(num_feats=128, normalize=True),
    bbox_head=dict(
        type='DETRHead', num_classes=20, embed_dims=256,
        loss_cls=dict(type='CrossEntropyLoss', bg_cls_weight=0.1, use_sigmoid=False, loss_weight=1.0,
                      class_weight=1.0),
        loss_bbox=dict(type='L1Loss', loss_weight=5.0), loss_iou=dict(type='GIoULoss', loss_weight=2.0)),
    train_cfg=dict(assigner=dict(type='HungarianAssigner', match_costs=[
        dict(type='ClassificationCost', weight=1.0), dict(type='BBoxL1Cost', weight=5.0, box_format='xywh'),
        dict(type='IoUCost', iou_mode='giou', weight=2.0)])),
    test_cfg=dict(max_per_img=100),
)  # fmt: skip
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='AdamW', lr=1e-4, weight_decay=1e-4), clip_grad=dict(max_norm=0.1, norm_type=2)
)
param_scheduler = []
train_cfg = dict(type='IterBasedTrainLoop', max_iters=max_iters, val_interval=max_iters)
