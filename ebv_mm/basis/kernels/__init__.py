"""Compiled kernels: a small C file each, built when it is first needed; without a compiler torch does the same."""

from .hadamard import HadamardKernel, hadamard_kernel

__all__ = ['HadamardKernel', 'hadamard_kernel']
