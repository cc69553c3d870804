"""Very many classes: which d and tau to take, classes in waves, a falling tau, and whether training has begun."""

from .advice import Advice, advise, tau_for, warn_if_far
from .monitor import EBVMonitorHook
from .tau import TauHook
from .waves import WaveHook, WaveSampler

__all__ = ['Advice', 'EBVMonitorHook', 'TauHook', 'WaveHook', 'WaveSampler', 'advise', 'tau_for', 'warn_if_far']
