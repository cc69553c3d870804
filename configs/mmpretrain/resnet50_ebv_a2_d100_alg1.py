_base_ = 'resnet50_ebv_a2_d100.py'

model = dict(head=dict(basis='data/ebv/1000x100_alg1.safetensors'))
# Algorithm 1 to the angle of the authors' file; the falling step and alpha are ours (docs/basis.md)
basis_options = dict(method='algorithm1', seed=42, alpha=0.1349, lr=3e-3, last_lr=1e-4, tightness=0.9, max_steps=6000)
