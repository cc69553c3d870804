import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent


def version():
    """Read the version without importing the package, which would need torch."""
    text = (HERE / 'ebv_mm' / '__init__.py').read_text(encoding='utf-8')
    return re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE).group(1)


class BuildWithMim(build_py):
    """Put configs and tools where OpenMMLab's `mim` looks for them in an installed package: in its folder `.mim`."""

    def run(self):
        super().run()
        if self.editable_mode:  # the clone itself has them
            return
        mim = Path(self.build_lib) / 'ebv_mm' / '.mim'
        shutil.rmtree(mim, ignore_errors=True)
        for folder in ('configs', 'tools'):
            # tools/setup_env makes the environments of a clone
            shutil.copytree(HERE / folder, mim / folder, ignore=shutil.ignore_patterns('__pycache__', 'setup_env'))
        shutil.copy(HERE / 'model-index.yml', mim)


# torch, torchvision, mmcv, mmengine and the hosts are required and not declared. Each of them stands under one of two
# names, OpenMMLab's own or that of a fork (ebv_mm/compat.py lists them), and pip would install the one over the other;
# which build of torch and mmcv fits depends on the machine. So installing ebv_mm never replaces what is there, and
# what is missing is said when it is asked for.
setup(
    name='ebv_mm',
    version=version(),
    description='Equiangular Basis Vectors for mmpretrain, mmdetection and mmsegmentation',
    long_description=(HERE / 'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    author='The ebv_mm authors',
    license='Apache-2.0',
    keywords=['computer vision', 'image classification', 'object detection', 'semantic segmentation', 'OpenMMLab'],
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        *(f'Programming Language :: Python :: 3.{minor}' for minor in range(10, 15)),
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
    python_requires='>=3.10',
    packages=find_packages(include=['ebv_mm', 'ebv_mm.*']),
    package_data={'ebv_mm.basis.kernels': ['*.c']},
    install_requires=['numpy', 'rich', 'safetensors'],
    cmdclass={'build_py': BuildWithMim},
)
