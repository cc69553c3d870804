# "+ LR optimizations": A1 without TrivialAugment and random erasing.
_base_ = '../resnet50_fc_a1.py'

off = ('NumpyToPIL', 'torchvision/TrivialAugmentWide', 'PILToNumpy', 'RandomErasing')
train_pipeline = [step for step in _base_.train_pipeline if step['type'] not in off]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
