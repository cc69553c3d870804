_base_ = 'mask_rcnn_swin_tiny_fc_1x.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = 'data/ebv/81x81.safetensors'
model = dict(
    roi_head=dict(
        bbox_head=dict(type='EBVBBoxHead', basis=basis),
        mask_head=dict(type='EBVMaskHead', basis=basis),
    )
)
