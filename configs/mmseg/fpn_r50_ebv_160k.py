# The paper announces FPN, but has no figure for it.
_base_ = 'mmseg::sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = 'data/ebv/150x150.safetensors'
model = dict(decode_head=dict(type='EBVDecodeHead', head='FPNHead', basis=basis))
