# The config, with the rivals' heads and what measures; benchmarks/comparison.py sets the rest.
_base_ = '../../configs/mmpretrain/large_n/resnet8_fc_characters.py'
custom_imports = dict(
    imports=['ebv_mm', 'comparison_hook', 'rival_heads', 'trained_vectors'], allow_failed_imports=False
)
default_hooks = dict(measure=dict(type='MeasureHook'))
