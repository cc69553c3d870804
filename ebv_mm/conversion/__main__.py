"""``python -m ebv_mm.conversion CONFIG [CHECKPOINT] --out FOLDER``: any model of the hosts becomes an EBV model."""

import argparse
import sys
from typing import List, Optional

from ..output import print_table
from .classifiers import ConversionError
from .command import IMAGES, convert


def main(argv: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(prog='python -m ebv_mm.conversion', description=__doc__)
    parser.add_argument('config', help='path of a config of a host, or its address such as mmdet::...')
    parser.add_argument('checkpoint', nargs='?', help='checkpoint of that config, a path or a URL')
    parser.add_argument('--out', required=True, metavar='FOLDER', help='folder for the new config and checkpoint')
    parser.add_argument('--dim', type=int, help='d of the basis (default: the number of its vectors)')
    parser.add_argument('--tau', type=float, help='temperature (default: 0.07, or the one that fits the checkpoint)')
    parser.add_argument('--check', action='store_true', help='compare FC and EBV on random features too')
    parser.add_argument('--images', type=int, default=IMAGES, help='how many test images to compare on')
    parser.add_argument(
        '--authors-basis', metavar='FILE', help="the basis of the authors' checkpoint, as they saved it"
    )
    args = parser.parse_args(argv)
    try:
        if args.authors_basis:
            from .authors import convert_authors

            result = convert_authors(args.config, args.checkpoint, args.authors_basis, out=args.out)
        else:
            result = convert(
                args.config, args.checkpoint, out=args.out, dim=args.dim, tau=args.tau, check=args.check,
                images=args.images,
            )  # fmt: skip
    except ConversionError as error:
        sys.exit(f'error: {error}')
    print_table(result.rows)
    for name, reason in result.left.items():
        print(f'left alone: {name} ({reason})')
    for note in result.notes:
        print(note)
    print(' '.join(f'wrote {file}' for file in (result.config, result.checkpoint) if file))


if __name__ == '__main__':
    main()
