# iNaturalist 2018, 8 GPUs x 128 images, setting A1 for 200 epochs, warm-up included: our reading of "the training epoch
# is set as 200", which may mean 5 + 200.
_base_ = 'resnet50_fc_a1.py'

model = dict(head=dict(num_classes=8142))
data_preprocessor = dict(num_classes=8142)

train_dataloader = dict(
    dataset=dict(
        type='INaturalist2018',
        data_root='data/inaturalist2018',
        ann_file='train2018.json',
        pipeline=_base_.train_pipeline,
        _delete_=True,
    )
)
val_dataloader = dict(
    dataset=dict(
        type='INaturalist2018',
        data_root='data/inaturalist2018',
        ann_file='val2018.json',
        pipeline=_base_.test_pipeline,
        _delete_=True,
    )
)
test_dataloader = val_dataloader

param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=True, begin=0, end=6),
    dict(type='CosineAnnealingLR', T_max=195, by_epoch=True, begin=5, end=200),
]
train_cfg = dict(max_epochs=200)
