# The helpers of `python -m ebv_mm.basis --advise` at d = 4096; N / d = 2.4.
_base_ = './resnet8_fc_characters.py'

basis = dict(num_classes=10000, dim=4096, method='kerdock', structured=True)
norm_cfg = dict(type='BN1d', affine=False)
model = dict(head=dict(type='EBVClsHead', basis=basis, tau=0.0196, norm_cfg=norm_cfg, predict_topk=5))
default_hooks = dict(tau=dict(type='TauHook', start=0.0196, stop=0.0049, end=1950))
