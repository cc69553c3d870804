_base_ = 'mmseg::upernet/upernet_r50_4xb4-160k_ade20k-512x512.py'

# The paper's multi-scale test scales (2048, 512), as mmseg 0.x did; mmseg 1 would scale the image as it is on disk.
resizes = [dict(type='Resize', scale=(int(2048 * r), int(512 * r)), keep_ratio=True) for r in _base_.img_ratios]
load, augment = _base_.tta_pipeline
tta_pipeline = [load, dict(augment, transforms=[resizes, *augment['transforms'][1:]])]

auto_scale_lr = dict(base_batch_size=16)
randomness = dict(seed=0)  # of the authors' EBV run
