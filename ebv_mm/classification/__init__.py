"""For mmpretrain: the head, and what the paper's experiments need beyond it."""

from .characters import DistortCharacter, WrittenCharacters
from .datasets import INaturalist2018, LongTailCIFAR10, LongTailCIFAR100, RandomImages
from .head import EBVClsHead
from .metric import StreamingAccuracy
from .resnet import CIFARResNet
from .transforms import PositionCrop, ResizeCenterCrop

__all__ = [
    'CIFARResNet',
    'DistortCharacter',
    'EBVClsHead',
    'INaturalist2018',
    'LongTailCIFAR10',
    'LongTailCIFAR100',
    'PositionCrop',
    'RandomImages',
    'ResizeCenterCrop',
    'StreamingAccuracy',
    'WrittenCharacters',
]
