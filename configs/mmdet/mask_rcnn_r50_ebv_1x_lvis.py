# Beyond the paper: the 1,203 classes of LVIS v1, and the background.
_base_ = 'mmdet::lvis/mask-rcnn_r50_fpn_sample1e-3_ms-1x_lvis-v1.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

cls_predictor_cfg = dict(type='EBVLinear', basis='data/ebv/1204x1204.safetensors')
model = dict(roi_head=dict(bbox_head=dict(cls_predictor_cfg=cls_predictor_cfg)))
