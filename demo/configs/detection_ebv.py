_base_ = './detection_fc.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)
basis = 'data/ebv/11x11.safetensors'
model = dict(
    roi_head=dict(
        bbox_head=dict(type='EBVBBoxHead', basis=basis),
        mask_head=dict(type='EBVMaskHead', basis=basis),
    )
)
