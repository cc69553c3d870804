_base_ = 'resnet50_fc_a2.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

model = dict(head=dict(type='EBVClsHead', basis='data/ebv/1000x1000.safetensors'))
