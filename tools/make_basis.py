"""The same as python -m ebv_mm.basis, which works without a clone too."""

import sys

from ebv_mm.basis.__main__ import main

if __name__ == '__main__':
    sys.exit(main())
