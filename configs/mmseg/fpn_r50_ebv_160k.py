# The paper announces FPN, but has no figure for it.
_base_ = 'fpn_r50_fc_160k.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = 'data/ebv/150x150.safetensors'
model = dict(decode_head=dict(type='EBVDecodeHead', head='FPNHead', basis=basis))
