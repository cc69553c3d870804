"""Trainings that run as subprocesses, several at once: what demo/ and benchmarks/ are built on."""

from .scalars import read_scalars
from .schedule import ENVIRONMENT, INTERRUPTED, Training, interruptible, train_all

__all__ = ['ENVIRONMENT', 'INTERRUPTED', 'Training', 'interruptible', 'read_scalars', 'train_all']
