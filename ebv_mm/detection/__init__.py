"""For mmdet."""

from .heads import EBVBBoxHead, EBVMaskHead

__all__ = ['EBVBBoxHead', 'EBVMaskHead']
