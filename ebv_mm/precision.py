"""In which precision logits are computed, also under autocast."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def working_dtype(*tensors: Tensor) -> torch.dtype:
    """At least float32: a cosine divided by a tau of 0.007 leaves float16 with errors of several tenths."""
    return torch.float64 if any(tensor.dtype == torch.float64 for tensor in tensors) else torch.float32


def autocast_off(device_type: str) -> AbstractContextManager:
    """Switch autocast off on the device, where the device knows autocast at all."""
    try:
        return torch.autocast(device_type, enabled=False)
    except RuntimeError:
        return nullcontext()
