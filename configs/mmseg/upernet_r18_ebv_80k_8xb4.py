# 8 GPUs x 4 images = 32, as in the authors' logs, at the same learning rate; the paper's text says 16.
_base_ = 'upernet_r18_ebv_80k.py'

auto_scale_lr = dict(base_batch_size=32)
