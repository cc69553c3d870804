_base_ = 'mmseg::swin/swin-tiny-patch4-window7-in1k-pre_upernet_8xb2-160k_ade20k-512x512.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = 'data/ebv/150x150.safetensors'
model = dict(
    decode_head=dict(type='EBVDecodeHead', head='UPerHead', basis=basis),
    auxiliary_head=dict(type='EBVDecodeHead', head='FCNHead', basis=basis),
)
