"""What tools/train.py and tools/test.py share: one command line for all hosts, on GPUs and without."""

from .arguments import argument_parser, existing_checkpoint, existing_file
from .checks import check_run
from .configs import ConfigError, load_config
from .ending import one_sentence
from .runner import build_runner
from .testing import dump_of, save_pictures, use_tta

__all__ = [
    'ConfigError',
    'argument_parser',
    'build_runner',
    'check_run',
    'dump_of',
    'existing_checkpoint',
    'existing_file',
    'load_config',
    'one_sentence',
    'save_pictures',
    'use_tta',
]
