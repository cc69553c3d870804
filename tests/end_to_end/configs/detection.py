# Mask R-CNN of the paper, shrunk: a slim ResNet-18 on 4 scenes with 3 classes.
_base_ = '../../../configs/mmdet/mask_rcnn_r50_ebv_1x.py'

basis = 'data/ebv/4x4.safetensors'
model = dict(
    backbone=dict(depth=18, base_channels=8, init_cfg=None),
    neck=dict(in_channels=[8, 16, 32, 64], out_channels=16),
    rpn_head=dict(in_channels=16, feat_channels=16),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=16),
        bbox_head=dict(in_channels=16, fc_out_channels=32, num_classes=3, basis=basis),
        mask_roi_extractor=dict(out_channels=16),
        mask_head=dict(in_channels=16, conv_out_channels=16, num_classes=3, basis=basis),
    ),
    test_cfg=dict(rcnn=dict(score_thr=0.0)),  # two iterations teach it nothing, yet there must be boxes to evaluate
)
dataset = dict(
    data_root='', ann_file='scenes.json', data_prefix=dict(img='images'), metainfo=dict(classes=('a', 'b', 'c'))
)
train_pipeline = _base_.train_pipeline
train_pipeline[2] = dict(type='Resize', scale=(64, 64), keep_ratio=True)
test_pipeline = _base_.test_pipeline
test_pipeline[1] = dict(type='Resize', scale=(64, 64), keep_ratio=True)
train_dataloader = dict(num_workers=0, persistent_workers=False, dataset=dict(dataset, pipeline=train_pipeline))
val_dataloader = dict(num_workers=0, persistent_workers=False, dataset=dict(dataset, pipeline=test_pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(ann_file='scenes.json')
test_evaluator = val_evaluator
train_cfg = dict(max_epochs=1)
