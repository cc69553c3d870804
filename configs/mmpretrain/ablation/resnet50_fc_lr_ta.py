# "+ TrivialAugment": A1 without random erasing.
_base_ = '../resnet50_fc_a1.py'

train_pipeline = [step for step in _base_.train_pipeline if step['type'] != 'RandomErasing']
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
