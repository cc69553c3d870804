"""Debian's packages of the fonts: downloaded and unpacked into a folder, without installing anything."""

import shutil
import subprocess
from pathlib import Path

from .catalogue import Font


class MissingFontsError(RuntimeError):
    """Fonts are not there and cannot be fetched here."""


def unpacked(folder: Path, package: str) -> Path:
    return folder / 'fonts' / package


def fetch(folder: Path, package: str) -> bool:
    """Download and unpack a package, unless that was done before; returns whether there was something to do."""
    target = unpacked(folder, package)
    if target.exists():
        return False
    if not (shutil.which('apt-get') and shutil.which('dpkg')):
        raise MissingFontsError(
            f'{package} is not in {target}, and there is no apt-get and dpkg here to fetch it; get the package from '
            f'packages.debian.org and unpack it there, or pass --packages with those that you have'
        )
    downloads = folder / 'packages'
    downloads.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run(['apt-get', 'download', package], cwd=downloads, capture_output=True, text=True, check=False)
    found = sorted(downloads.glob(f'{package}_*.deb'))
    if ran.returncode or not found:
        raise MissingFontsError(
            f'apt-get cannot download {package}: {ran.stderr.strip() or ran.stdout.strip()}; '
            'run `apt-get update`, or pass --packages without it'
        )
    # unpacked beside its place and moved there whole, so that what exists is complete
    partial = target.with_name(f'{package}.partial')
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)  # some versions of dpkg make the last folder only
    ran = subprocess.run(['dpkg', '-x', str(found[-1]), str(partial)], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise MissingFontsError(f'dpkg cannot unpack {found[-1]}: {ran.stderr.strip()}; delete it and try again')
    partial.rename(target)
    return True


def font_path(folder: Path, font: Font) -> Path:
    """The font's file within its unpacked package."""
    found = sorted(path for path in unpacked(folder, font.package).rglob(font.file) if path.is_file())
    if not found:
        raise MissingFontsError(
            f'{font.package} in {unpacked(folder, font.package)} has no {font.file}; another release of Debian may '
            'have renamed it: remove the font from the catalogue, or pass --packages without it'
        )
    return found[0]
