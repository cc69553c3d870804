_base_ = 'mmseg::upernet/upernet_r18_4xb4-80k_ade20k-512x512.py'

# The host's file lacks what mmseg 1 demands of every training.
model = dict(data_preprocessor=dict(size=(512, 512)))
