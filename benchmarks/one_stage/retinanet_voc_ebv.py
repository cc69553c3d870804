_base_ = 'retinanet_voc_fc.py'
custom_imports = dict(imports=['ebv_mm'], allow_failed_imports=False)

basis = dict(num_classes=21, dim=21)
model = dict(bbox_head=dict(type='EBVHead', head='RetinaHead', layer='retina_cls', prior=0.01, basis=basis))
