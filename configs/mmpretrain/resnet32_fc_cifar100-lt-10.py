_base_ = 'resnet32_fc_cifar100-lt-100.py'

train_dataloader = dict(dataset=dict(imbalance=10))
