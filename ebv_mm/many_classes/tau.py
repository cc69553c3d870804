"""A temperature that falls during training: soft targets first, sharp ones at the end."""

from mmengine.hooks import EMAHook, Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS

from ..tau_state import check_tau
from .classifiers import ebv_layers


@HOOKS.register_module()
class TauHook(Hook):
    r"""Moves the tau of all EBV layers from one value to another, geometrically.

    .. math:: \tau(i) = \tau_0 (\tau_1 / \tau_0)^{\min(1, i / \mathrm{end})}

    The value follows from the iteration alone, so resuming needs nothing. A checkpoint holds the value with which it
    was saved, beside the projection, so that a prediction uses it whatever the config says.

    Args:
        start: :math:`\tau_0`, in the first iteration.
        stop: :math:`\tau_1`.
        end: The iteration from which on it is ``stop``; three quarters of all is a good choice.
    """

    priority = 'VERY_HIGH'

    def __init__(self, start: float, stop: float, end: int) -> None:
        check_tau(start)
        check_tau(stop)
        if end < 1:
            raise ValueError(f'end = {end}, but it is the iteration from which on tau is {stop}; give at least 1')
        self.start, self.stop, self.end = start, stop, end

    def at(self, iteration: int) -> float:
        return self.start * (self.stop / self.start) ** min(1.0, iteration / self.end)

    def before_train_iter(self, runner, batch_idx: int, data_batch=None) -> None:
        tau = self.at(runner.iter)
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        # what averages the weights keeps a copy of the model, which a checkpoint holds as well
        copies = [hook.ema_model.module for hook in runner.hooks if isinstance(hook, EMAHook)]
        for layer in [layer for one in (model, *copies) for layer in ebv_layers(one)]:
            layer.tau = tau
        runner.message_hub.update_scalar('train/tau', tau)
