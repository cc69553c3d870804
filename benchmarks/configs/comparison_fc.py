# The config, with the rivals' heads and what measures; benchmarks/comparison.py sets the rest.
_base_ = '../../configs/mmpretrain/large_n/resnet8_fc_characters.py'
custom_imports = dict(
    imports=['ebv_mm', 'comparison_hook', 'rival_heads', 'sampled_ebv', 'trained_vectors'], allow_failed_imports=False
)
# the same for all: twice as fast where the CPU has instructions for it, and the classifiers matter the more
model = dict(backbone=dict(bfloat16=True))
default_hooks = dict(measure=dict(type='MeasureHook'))
