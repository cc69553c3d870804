_base_ = 'resnet32_fc_cifar10-lt-100_30e.py'

train_dataloader = dict(dataset=dict(imbalance=10))
