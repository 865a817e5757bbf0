"""Write a report of a baseline: one self-contained HTML page, and its charts as PNG files."""

import argparse
import sys
from pathlib import Path

from baseline.needs import require

EXAMPLES = """examples:
  report.py baseline.json                   write baseline-report/index.html and the charts
  report.py baseline.json --out public/     another directory"""


def main() -> int:
    """Read the record; write the page and the charts."""
    parser = argparse.ArgumentParser(
        prog="report.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", type=Path, help="a record written by collect.py")
    parser.add_argument("--out", type=Path, metavar="DIRECTORY", help="output directory (RECORD-report)")
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
