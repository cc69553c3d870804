_base_ = 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py'

randomness = dict(seed=0)  # of the authors' EBV runs
