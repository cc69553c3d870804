_base_ = 'mask_rcnn_r50_fc_3x.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = 'data/ebv/81x81.safetensors'
model = dict(
    roi_head=dict(
        bbox_head=dict(type='EBVBBoxHead', basis=basis),
        mask_head=dict(type='EBVMaskHead', basis=basis),
    )
)
