"""What a user gets to see: whole files, figures, tables, progress. Needs no OpenMMLab."""

from .figures import new_figure, save_figure
from .files import check_writable, whole_file
from .progress import Progress, StopOnInterrupt
from .tables import markdown_table, print_table

__all__ = [
    'Progress',
    'StopOnInterrupt',
    'check_writable',
    'markdown_table',
    'new_figure',
    'print_table',
    'save_figure',
    'whole_file',
]
