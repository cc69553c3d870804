"""Where torch computes."""

from typing import Union

import torch


def check_device(device: Union[None, str, torch.device]) -> None:
    """Raise ValueError unless torch can compute there; None is the CPU."""
    try:
        torch.zeros(1, device=device or 'cpu').item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f'device = {str(device)!r} cannot be used here ({reason}); give cpu, or a GPU that torch sees, as cuda:0'
        ) from error
