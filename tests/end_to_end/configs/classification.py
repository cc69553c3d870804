# ResNet-50 A2 of the paper, shrunk: the same recipe on 8 images of 3 classes.
_base_ = '../../../configs/mmpretrain/resnet50_ebv_a2.py'

model = dict(
    backbone=dict(depth=18, base_channels=8),
    head=dict(num_classes=3, in_channels=64, basis='data/ebv/3x5.safetensors'),
    data_preprocessor=dict(num_classes=3),
)
data_preprocessor = dict(num_classes=3)
dataset = dict(
    _delete_=True, type='CustomDataset', data_prefix='images', ann_file='labels.txt', classes=('a', 'b', 'c')
)
train_dataloader = dict(batch_size=4, num_workers=0, dataset=dict(dataset, pipeline=_base_.train_pipeline))
val_dataloader = dict(batch_size=4, num_workers=0, dataset=dict(dataset, pipeline=_base_.test_pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(topk=(1,))
test_evaluator = val_evaluator
optim_wrapper = dict(type='OptimWrapper')
train_cfg = dict(max_epochs=1)
