"""What differs between OpenMMLab's releases and their forks, and between versions of torch: mended here, and only here.

Importing ebv_mm calls :func:`mend`.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, List, Optional, Tuple

try:
    import numpy as np
    import torch
    from mmengine.config.utils import MODULE2PACKAGE
    from mmengine.logging import HistoryBuffer
    from mmengine.utils import digit_version
except ModuleNotFoundError as error:
    raise ImportError(
        f'ebv_mm needs torch and mmengine, but {error.name} is not installed; install torch as pytorch.org says, and '
        'mmengine with: pip install mmengine (or its fork, for torch 2.6 and newer: pip install onedl-mmengine)'
    ) from error

# What the hosts are called on the package index: OpenMMLab's own releases, and the maintained forks of the same import
# name. pip knows nothing of that kinship, which is why setup.py declares none of them.
DISTRIBUTIONS = {
    'mmengine': ('mmengine', 'onedl-mmengine'),
    'mmcv': ('mmcv', 'onedl-mmcv'),
    'mmpretrain': ('mmpretrain', 'onedl-mmpretrain'),
    'mmdet': ('mmdet', 'onedl-mmdetection'),
    'mmseg': ('mmsegmentation', 'onedl-mmsegmentation'),
}
HOSTS = ('mmpretrain', 'mmdet', 'mmseg')


def mend() -> None:
    find_the_configs_of_forks()
    if digit_version(torch.__version__) >= digit_version('2.6.0'):
        torch.serialization.add_safe_globals(trusted())


def find_the_configs_of_forks() -> None:
    """Let ``_base_ = 'mmseg::...'`` resolve where the distribution of mmseg is a fork.

    mmengine looks for the distribution ``mmsegmentation`` and, where there is none, for a module of that name.
    """
    for module in HOSTS:
        if _is_distribution(DISTRIBUTIONS[module][1]):
            MODULE2PACKAGE[module] = module


def trusted() -> List[Tuple[Any, str]]:
    """What mmengine's own checkpoints hold besides tensors, with the names that they are pickled under.

    Since torch 2.6 ``torch.load`` refuses every type that it does not know. mmengine 0.10.7 is older: it writes the
    history of the losses, numpy arrays in a ``HistoryBuffer``, and cannot read it again. Naming those types lets them
    through and leaves the protection on. (The fork onedl-mmengine warns, and loads without it where torch refuses.)
    """
    types = [np.ndarray, np.dtype, HistoryBuffer, *{type(np.dtype(kind)) for kind in '?bBhHiIlLqQefd'}]
    names = [(each, f'{each.__module__}.{each.__qualname__}') for each in types]
    array, scalar = np.empty(0).__reduce__()[0], np.float64().__reduce__()[0]
    for core in ('numpy.core.multiarray', 'numpy._core.multiarray'):  # written by numpy 1, and by numpy 2
        names += [(array, f'{core}._reconstruct'), (scalar, f'{core}.scalar')]
    return [*names, (_statistic, 'builtins.getattr')]


def _statistic(owner: type, name: str) -> Any:
    """Stand in for ``getattr``, by which a HistoryBuffer names its own methods; it answers for those alone."""
    if owner is not HistoryBuffer or name not in ('min', 'max', 'current', 'mean'):
        raise ValueError(f'the checkpoint asks for {name!r} of {owner!r}, but only statistics of mmengine are trusted')
    return getattr(owner, name)


def _is_distribution(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def why_not_imported(host: str, error: ImportError) -> str:
    """Say in one sentence why a host cannot be imported, and what to do."""
    stock, fork = DISTRIBUTIONS[host]
    if error.name == host:
        return f'{host} is not installed; install it with: pip install {stock} (beside the onedl forks: {fork})'
    if lacks_ops(error):
        return why_no_ops(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f'{host} needs {error.name}, which is not installed; install it with: pip install {error.name}'
    return f'importing {host} fails: {error}'


def why_not_usable(host: str) -> Optional[str]:
    """Import the models of a host; where that fails say why in one sentence.

    mmengine goes on with a warning where a host cannot be imported, and finds none of its names later.
    """
    try:
        import_module(f'{host}.models')
    except ImportError as error:
        return f'the config is one of {host}: {why_not_imported(host, error)}'
    return None


def lacks_ops(error: Exception) -> bool:
    """Tell whether an error comes from an mmcv that is missing, has no compiled ops, or was built for another torch."""
    if not isinstance(error, ImportError):
        return False
    return error.name in ('mmcv', 'mmcv._ext') or '_ext.' in str(error.path or '')


def why_no_ops(error: ImportError) -> str:
    mmcv = next((name for name in DISTRIBUTIONS['mmcv'] if _is_distribution(name)), 'mmcv')
    return (
        f'there is no mmcv with compiled ops that fit torch {torch.__version__} ({error}); install a wheel of it that '
        'was built for this torch, or compile it with: '
        f'MMCV_WITH_OPS=1 pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps {mmcv}'
    )
