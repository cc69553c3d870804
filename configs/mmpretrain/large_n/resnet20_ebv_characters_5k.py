# The numbers of `python -m ebv_mm.basis --advise --num-classes 5000`; N / d = 1.2.
_base_ = './resnet20_fc_characters_5k.py'

basis = dict(num_classes=5000, dim=4096, method='kerdock', structured=True)
norm_cfg = dict(type='BN1d', affine=False)
model = dict(head=dict(type='EBVClsHead', basis=basis, tau=0.0196, norm_cfg=norm_cfg, predict_topk=5))
custom_hooks = [dict(type='TauHook', start=0.0196, stop=0.0049, end=1500), dict(type='EBVMonitorHook')]
