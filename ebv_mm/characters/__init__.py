"""Written characters as a classification problem of 100,000 classes, rendered from the fonts that Debian packages."""

from .catalogue import CATALOGUE, Font
from .split import Split, split_by_family
from .store import Store

__all__ = ['CATALOGUE', 'Font', 'Split', 'Store', 'split_by_family']
