"""Any model of the hosts becomes an EBV model; the same as ``python -m ebv_mm.conversion``."""

from ebv_mm.conversion.__main__ import main

if __name__ == '__main__':
    main()
