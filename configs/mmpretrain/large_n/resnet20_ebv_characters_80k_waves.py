# The first d classes alone, whose vectors are orthonormal, then more, then all.
_base_ = './resnet20_ebv_characters_80k.py'

waves = [(0, 16384), (4000, 32768), (8000, None)]
train_dataloader = dict(sampler=dict(_delete_=True, type='WaveSampler', waves=waves, batch_size=256))
custom_hooks = [
    dict(type='TauHook', start=0.0098, stop=0.00245, end=30000),
    dict(type='EBVMonitorHook'),
    dict(type='WaveHook', waves=waves),
]
