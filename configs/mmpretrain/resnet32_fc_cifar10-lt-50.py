_base_ = 'resnet32_fc_cifar10-lt-100.py'

train_dataloader = dict(dataset=dict(imbalance=50))
