"""Show a baseline: one HTML page that needs nothing beside it, and its pictures as PNG."""

import argparse
import sys
from pathlib import Path

from baseline.needs import require

EXAMPLES = """examples:
  report.py baseline.json                   writes baseline-report/index.html and the pictures beside it
  report.py baseline.json --out public/     another directory"""


def main() -> int:
    """Read the record, write page and pictures."""
    parser = argparse.ArgumentParser(
        prog="report.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", type=Path, help="what collect.py wrote")
    parser.add_argument("--out", type=Path, metavar="DIRECTORY", help="where to (RECORD-report)")
    arguments = parser.parse_args()
    require(["numpy", "scipy", "matplotlib"])

    from baseline.page import write_report
    from baseline.record import RecordError, read

    out = arguments.out or arguments.record.with_name(f"{arguments.record.stem}-report")
    try:
        page = write_report(read(arguments.record), out)
    except RecordError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"{error.filename or out} cannot be written: {error.strerror}\n")
        return 2
    sys.stdout.write(f"{page}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
