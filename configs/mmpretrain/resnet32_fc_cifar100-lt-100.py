_base_ = ['mmpretrain::_base_/datasets/cifar100_bs16.py', '_base_/resnet32_cifar.py']

model = dict(head=dict(num_classes=100))
train_dataloader = dict(batch_size=128, dataset=dict(type='LongTailCIFAR100', imbalance=100))
val_dataloader = dict(batch_size=128)
test_dataloader = dict(batch_size=128)
