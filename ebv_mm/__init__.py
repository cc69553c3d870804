"""Equiangular Basis Vectors for OpenMMLab."""

__version__ = '0.1.0'
