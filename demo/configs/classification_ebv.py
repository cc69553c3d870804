_base_ = './classification_fc.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)
basis = 'data/ebv/10x10.safetensors'
model = dict(head=dict(type='EBVClsHead', basis=basis))
