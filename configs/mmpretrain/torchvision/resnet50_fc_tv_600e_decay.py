# torchvision's next step, 80.04, which the paper does not quote: weight decay 2e-5, and none on norms.
_base_ = 'resnet50_fc_tv_600e.py'

optim_wrapper = dict(optimizer=dict(weight_decay=2e-5), paramwise_cfg=dict(norm_decay_mult=0.0))
