# The same with the parameters, their gradients and the optimizer's state sharded over the processes (FSDP). It needs
# torch >= 2.6. On GPUs: tools/dist_train.sh THIS_FILE 8; without one add
# --cfg-options strategy.model_wrapper.device_id=cpu
_base_ = './resnet20_ebv_1m.py'
runner_type = 'FlexibleRunner'
strategy = dict(type='FSDPStrategy', model_wrapper=dict(type='MMFullyShardedDataParallel', use_orig_params=True))
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9))
