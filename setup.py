import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent


def version():
    """Read the version without importing the package, which would need torch."""
    text = (HERE / 'ebv_mm' / '__init__.py').read_text(encoding='utf-8')
    return re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE).group(1)


# Ranges in which the hosts' own version checks agree; mmdet 3.3 and mmsegmentation 1.2 need mmcv >= 2.0.1, < 2.2.
# None of these distributions, nor anything they require, names torch (tests/test_setup.py checks it), so that
# installing ebv_mm into an existing environment never replaces the torch that is there. For the same reason
# torch, torchvision and mmcv are not declared at all: which build of them fits depends on the machine, and pip
# would compile mmcv in an isolated environment without torch, which gives an mmcv without its ops.
extras = {
    'cls': ['mmpretrain>=1.2,<2'],
    'det': ['mmdet>=3.3,<4'],
    # mmsegmentation imports ftfy and regex without declaring them.
    'seg': ['mmsegmentation>=1.2.2,<2', 'ftfy', 'regex'],
}
extras['all'] = sum(extras.values(), [])

setup(
    name='ebv_mm',
    version=version(),
    description='Equiangular Basis Vectors for mmpretrain, mmdetection and mmsegmentation',
    license='Apache-2.0',
    python_requires='>=3.8',
    packages=find_packages(include=['ebv_mm', 'ebv_mm.*']),
    install_requires=['mmengine>=0.10,<1', 'numpy', 'rich', 'safetensors'],
    extras_require=extras,
)
