_base_ = 'mask_rcnn_r50_fc_voc.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = 'data/ebv/21x21.safetensors'
model = dict(
    roi_head=dict(
        bbox_head=dict(type='EBVBBoxHead', basis=basis),
        mask_head=dict(type='EBVMaskHead', basis=basis),
    )
)
