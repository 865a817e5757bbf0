"""Send baseline records to the tables of a Supabase project."""

import argparse
import os
import sys
from pathlib import Path

from baseline.record import RecordError, read
from baseline.remote import UploadError, project_of, upload

EXAMPLES = """examples:
  export TOOLD_SUPABASE_URL=https://your-project.supabase.co TOOLD_SUPABASE_SERVICE_ROLE_KEY=…
  upload.py baseline.json            upload the run, its calls and its summaries
  upload.py baselines/*.json         upload several; existing rows are replaced, not duplicated

supabase/migrations creates the tables. Exit codes: 0 all records were uploaded, 1 some were not,
2 a file is not a record."""


def main() -> int:
    """Read and upload the records."""
    parser = argparse.ArgumentParser(
        prog="upload.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", type=Path, nargs="+", help="records written by collect.py")
    arguments = parser.parse_args()
    try:
        url, key = project_of(os.environ)
        for path in arguments.records:
            sys.stdout.write(f"{upload(read(path), url, key)} rows of {path}\n")
    except RecordError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except UploadError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
