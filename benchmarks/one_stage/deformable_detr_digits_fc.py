# A detector of queries on the demo's scenes of digits: 200 steps, for its first losses.
_base_ = './retinanet_digits_fc.py'

model = dict(
    _delete_=True,
    type='DeformableDETR',
    num_queries=30,
    num_feature_levels=3,
    data_preprocessor=dict(
        type='DetDataPreprocessor', mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], bgr_to_rgb=True),
    backbone=dict(
        type='ResNet', depth=18, base_channels=16, stem_channels=16, num_stages=4, out_indices=(1, 2, 3),
        frozen_stages=-1, norm_cfg=dict(type='BN', requires_grad=True), norm_eval=False, style='pytorch'),
    neck=dict(
        type='ChannelMapper', in_channels=[32, 64, 128], kernel_size=1, out_channels=64, act_cfg=None,
        norm_cfg=dict(type='GN', num_groups=8), num_outs=3),
    encoder=dict(num_layers=2, layer_cfg=dict(
        self_attn_cfg=dict(embed_dims=64, num_levels=3, num_heads=4),
        ffn_cfg=dict(embed_dims=64, feedforward_channels=128))),
    decoder=dict(num_layers=2, return_intermediate=True, layer_cfg=dict(
        self_attn_cfg=dict(embed_dims=64, num_heads=4), cross_attn_cfg=dict(embed_dims=64, num_levels=3, num_heads=4),
        ffn_cfg=dict(embed_dims=64, feedforward_channels=128)), post_norm_cfg=None),
    positional_encoding=dict(num_feats=32, normalize=True, offset=-0.5),
    bbox_head=dict(
        type='DeformableDETRHead', num_classes=10, embed_dims=64, sync_cls_avg_factor=True,
        loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=2.0),
        loss_bbox=dict(type='L1Loss', loss_weight=5.0), loss_iou=dict(type='GIoULoss', loss_weight=2.0)),
    train_cfg=dict(assigner=dict(type='HungarianAssigner', match_costs=[
        dict(type='FocalLossCost', weight=2.0), dict(type='BBoxL1Cost', weight=5.0, box_format='xywh'),
        dict(type='IoUCost', iou_mode='giou', weight=2.0)])),
    test_cfg=dict(max_per_img=20),
)  # fmt: skip
optimizer = dict(_delete_=True, type='AdamW', lr=5e-4, weight_decay=1e-4)
optim_wrapper = dict(optimizer=optimizer, clip_grad=dict(max_norm=0.1))
param_scheduler = []
