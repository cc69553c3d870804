"""From FC to EBV: configs of the hosts and checkpoints of their models."""

from .classifiers import ConversionError, find_classifiers
from .command import convert
from .configs import to_ebv

__all__ = ['ConversionError', 'convert', 'find_classifiers', 'to_ebv']
