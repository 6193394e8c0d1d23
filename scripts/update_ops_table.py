#!/usr/bin/env python3
"""Writes the table of docs/ops.md again, from what `netcl ops --markdown` prints.

    scripts/update_ops_table.py [--check] <netcl>

--check changes nothing and fails when the page is not up to date.
"""
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "ops.md"
TABLE = re.compile(r"^\| op \| computes \|.*\n(?:\|.*\n)+", re.MULTILINE)


def main(arguments):
    check = "--check" in arguments
    programs = [a for a in arguments if a != "--check"]
    if len(programs) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    table = subprocess.run([programs[0], "ops", "--markdown"], check=True, capture_output=True,
                           text=True).stdout
    page = PAGE.read_text(encoding="utf-8")
    found = TABLE.findall(page)
    if len(found) != 1:
        print(f"docs/ops.md must hold one table that begins with '| op | computes |': {len(found)}", file=sys.stderr)
        return 1
    if found[0] == table:
        print("docs/ops.md is up to date")
        return 0
    if check:
        print("docs/ops.md is not up to date: `make docs-ops` writes its table", file=sys.stderr)
        return 1
    PAGE.write_text(TABLE.sub(lambda _: table, page), encoding="utf-8")
    print("docs/ops.md: table written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
