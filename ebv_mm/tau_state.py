"""The temperature as part of a module's state, where a schedule has moved it."""

import math

import torch


def check_tau(tau: float) -> None:
    if not (isinstance(tau, (int, float)) and 0 < tau < math.inf):
        raise ValueError(f'tau = {tau!r}, but the temperature must be a positive number; the paper uses 0.07')


class HoldsTau:
    """A module with a temperature: a mixin for :class:`torch.nn.Module`.

    A checkpoint has the key ``tau``, one float64, if its value is another than the configured one, as under a
    :class:`~ebv_mm.many_classes.TauHook`. Loading it moves ``tau`` there; loading one without it moves ``tau`` back.
    """

    def hold_tau(self, tau: float) -> None:
        check_tau(tau)
        self.tau = self.configured_tau = tau

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self.tau != self.configured_tau:
            destination[f'{prefix}tau'] = torch.tensor(self.tau, dtype=torch.float64)

    def _load_from_state_dict(self, state_dict, prefix, *args) -> None:
        key = f'{prefix}tau'
        if key in state_dict:
            tau = float(state_dict[key])
            check_tau(tau)
            self.tau = tau
        elif f'{prefix}weight' in state_dict:
            self.tau = self.configured_tau
        without = {name: value for name, value in state_dict.items() if name != key}
        super()._load_from_state_dict(without, prefix, *args)
