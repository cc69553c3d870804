"""What the six configs of the demo share: the optimiser, the log, the checkpoint, loops by iteration."""

# Without clipping EBV starts badly: the gradient of v / |v| grows as 1 / |v|, and the hosts initialise the projection
# to a tiny v. After some twenty iterations no gradient of either twin is clipped any more.
optim_wrapper = dict(
    optimizer=dict(type='SGD', lr=0.1, momentum=0.9, weight_decay=5e-4),
    clip_grad=dict(max_norm=5),
)
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=5, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(type='CheckpointHook', by_epoch=False, save_optimizer=False, save_param_scheduler=False),
    sampler_seed=dict(type='DistSamplerSeedHook'),
)
log_processor = dict(by_epoch=False, window_size=5)
randomness = dict(seed=0)
env_cfg = dict(cudnn_benchmark=False, mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0))
val_cfg = dict()
test_cfg = dict()
