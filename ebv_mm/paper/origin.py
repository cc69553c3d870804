"""Of what a result has come: commit, versions and time."""

import subprocess
from datetime import datetime, timezone
from functools import lru_cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Dict

from .. import __version__

MODULES = ('torch', 'torchvision', 'mmengine', 'mmcv', 'mmpretrain', 'mmdet', 'mmseg')


def origin() -> Dict[str, object]:
    """Now, the commit of this clone and the versions of what computes."""
    return dict(time=datetime.now(timezone.utc).isoformat(timespec='seconds'), commit=commit(), versions=versions())


@lru_cache(maxsize=None)
def commit() -> str:
    """The commit of the clone, with a plus where files differ from it; the version where there is no clone."""
    here = Path(__file__).resolve().parents[2]
    if not (here / '.git').exists():
        return __version__
    head = _git(here, 'rev-parse', '--short=12', 'HEAD')
    return head + ('+' if _git(here, 'status', '--porcelain', '--untracked-files=no') else '')


@lru_cache(maxsize=None)
def versions() -> Dict[str, str]:
    """By module, because the maintained forks are distributed under other names."""
    distributions = packages_distributions()
    return {name: version(distributions[name][0]) for name in MODULES if name in distributions}


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(['git', '-C', str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
