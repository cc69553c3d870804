_base_ = '../../configs/mmpretrain/resnet32_ebv_cifar10-lt-100_30e.py'
custom_imports = dict(imports=['ebv_mm', 'trained_vectors'], allow_failed_imports=False)

model = dict(head=dict(type='TrainedVectorsClsHead'))
