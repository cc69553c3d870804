"""For mmpretrain."""

from .head import EBVClsHead

__all__ = ['EBVClsHead']
