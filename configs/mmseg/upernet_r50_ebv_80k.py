_base_ = 'upernet_r50_fc_80k.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = 'data/ebv/150x150.safetensors'
model = dict(
    decode_head=dict(type='EBVDecodeHead', head='UPerHead', basis=basis),
    auxiliary_head=dict(type='EBVDecodeHead', head='FCNHead', basis=basis),
)
