# The numbers of `python -m ebv_mm.basis --advise --num-classes 80000`; N / d = 4.9.
_base_ = '../_base_/characters.py'

basis = dict(num_classes=80000, dim=16384, method='kerdock', structured=True)
norm_cfg = dict(type='BN1d', affine=False)
model = dict(head=dict(type='EBVClsHead', basis=basis, tau=0.0098, norm_cfg=norm_cfg, predict_topk=5))
custom_hooks = [dict(type='TauHook', start=0.0098, stop=0.00245, end=30000), dict(type='EBVMonitorHook')]
