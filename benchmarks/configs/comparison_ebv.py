# The config, with the rivals' heads and what measures; benchmarks/comparison.py sets the rest.
_base_ = '../../configs/mmpretrain/large_n/resnet8_ebv_characters.py'
custom_imports = dict(
    imports=['ebv_mm', 'comparison_hook', 'margin_ebv', 'rival_heads', 'trained_vectors'], allow_failed_imports=False
)
# the same for all: twice as fast where the CPU has instructions for it, and the classifiers matter the more
model = dict(backbone=dict(bfloat16=True))
default_hooks = dict(measure=dict(type='MeasureHook'))
