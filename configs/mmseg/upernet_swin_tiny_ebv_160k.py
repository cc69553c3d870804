_base_ = 'upernet_swin_tiny_fc_160k.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = 'data/ebv/150x150.safetensors'
model = dict(
    decode_head=dict(type='EBVDecodeHead', head='UPerHead', basis=basis),
    auxiliary_head=dict(type='EBVDecodeHead', head='FCNHead', basis=basis),
)
