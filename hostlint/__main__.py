"""`python -m hostlint`."""
from __future__ import annotations

import sys

from hostlint.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
