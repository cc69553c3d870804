_base_ = ['mmpretrain::_base_/datasets/cifar10_bs16.py', '_base_/resnet32_cifar.py']

model = dict(head=dict(num_classes=10))
train_dataloader = dict(batch_size=128, dataset=dict(type='LongTailCIFAR10', imbalance=100))
val_dataloader = dict(batch_size=128)
test_dataloader = dict(batch_size=128)
