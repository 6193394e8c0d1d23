"""`python -m netcl` is the command-line tool, which the package brings along."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    tool = Path(__file__).parent / "bin" / "netcl"
    if not tool.is_file():
        sys.exit(f"netcl: the command-line tool is missing: {tool}")
    sys.stdout.flush()
    os.execv(tool, [str(tool), *sys.argv[1:]])


if __name__ == "__main__":
    main()
