_base_ = 'mmdet::swin/mask-rcnn_swin-t-p4-w7_fpn_1x_coco.py'

randomness = dict(seed=0)  # of the authors' EBV runs
