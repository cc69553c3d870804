"""The arguments that tools which read a config have in common."""

import argparse
from pathlib import Path

from mmengine.config import DictAction


def argument_parser(description: str, ranks: bool = True) -> argparse.ArgumentParser:
    """A parser that knows them; ``ranks``: also those of a tool that runs in several processes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('config', type=existing_file, help='config file')
    parser.add_argument('--work-dir', help='folder for logs and checkpoints (default: work_dirs/<config name>)')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=_Settings,
        metavar='KEY=VALUE',
        help='settings that override the config, as key=value; nested keys with dots, lists as key="[a,b]"',
    )
    parser.add_argument('--check', action='store_true', help='only look whether all that the config needs is there')
    parser.add_argument('--traceback', action='store_true', help='show where an error came from')
    parser.set_defaults(launcher='none', local_rank=0)
    if ranks:
        parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], help='job launcher')
        # torch.distributed.launch passes the rank by this flag, torchrun by the variable LOCAL_RANK.
        parser.add_argument('--local_rank', '--local-rank', type=int, help=argparse.SUPPRESS)
    return parser


class _Settings(DictAction):
    """mmengine's ``DictAction``, which says what is wrong with a setting."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        bare = [value for value in values if not value.partition('=')[1] or value.startswith('=')]
        if bare:
            parser.error(f'{option_string} {bare[0]}: a setting is written key=value, without spaces; write it so')
        try:
            super().__call__(parser, namespace, values, option_string)
        except (ValueError, AssertionError) as error:
            parser.error(f'{option_string} {" ".join(values)}: {error}; write lists as key="[a,b]"')


def existing_file(path: str) -> str:
    """Type of an argument that names a file."""
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f'{path!r} does not exist; give the path of a file')
    return path


def existing_checkpoint(path: str) -> str:
    """Type of an argument that names a checkpoint: a file, or an address, which is not looked up here."""
    return path if '://' in path else existing_file(path)
