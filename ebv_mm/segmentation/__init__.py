"""For mmseg."""

from .head import EBVDecodeHead

__all__ = ['EBVDecodeHead']
