# Beyond the paper: any ConvFC head takes the classifier through its own slot; here each of the three stages does.
_base_ = 'mmdet::cascade_rcnn/cascade-mask-rcnn_r50_fpn_1x_coco.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

cls_predictor_cfg = dict(type='EBVLinear', basis='data/ebv/81x81.safetensors')
bbox_head = [dict(head, cls_predictor_cfg=cls_predictor_cfg) for head in _base_.model.roi_head.bbox_head]
model = dict(roi_head=dict(bbox_head=bbox_head))
