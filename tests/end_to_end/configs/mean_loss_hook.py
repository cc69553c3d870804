from pathlib import Path

from mmengine.dist import all_reduce, is_main_process
from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class MeanLossHook(Hook):
    """Write the loss of each step, averaged over the processes, to losses.txt in the work dir."""

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        loss = outputs['loss'].detach().clone()
        all_reduce(loss, 'mean')
        if is_main_process():
            with open(Path(runner.work_dir) / 'losses.txt', 'a') as file:
                file.write(f'{loss.item():.9g}\n')
