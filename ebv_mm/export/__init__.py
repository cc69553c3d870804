"""From a trained model to files that run elsewhere, and what those files predict beside the model itself."""

from .agreement import Agreement, agreement
from .files import FORMATS, run_file, write
from .linear import linear_twin
from .networks import Network, networks_of, plugged

__all__ = [
    'FORMATS',
    'Agreement',
    'Network',
    'agreement',
    'linear_twin',
    'networks_of',
    'plugged',
    'run_file',
    'write',
]
