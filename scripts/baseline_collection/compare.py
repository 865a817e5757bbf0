"""Compare baselines: which tools got slower or faster between the first record and each of the others."""

import argparse
import sys
from pathlib import Path

from baseline.needs import require
from baseline.options import positive

EXAMPLES = """examples:
  compare.py before.json after.json                          a table in Markdown
  compare.py main.json branch.json --json comparison.json    also as JSON, with an exit code for CI
  compare.py v1.json v2.json v3.json --threshold 0.25        each against v1; ignore changes below 25 %
  compare.py runs-*.json                                     pairs of runs from collect.py --candidate --repeat:
                                                             reliable on a busy machine; the candidate is "after"

Exit codes: 0 nothing is slower or fails more often, 1 something is, 2 the records cannot be read or compared."""


def main() -> int:
    """Read the records and print the table."""
    parser = argparse.ArgumentParser(
        prog="compare.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="the record to compare with")
    parser.add_argument("after", type=Path, nargs="+", help="one or more records")
    parser.add_argument(
        "--threshold",
        type=positive,
        metavar="SHARE",
        help="ignore smaller changes of the median (0.1 for alternating runs, else 0.2)",
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table to this file instead of printing it"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the comparisons to this file")
    arguments = parser.parse_args()
    require(["numpy", "scipy"])

    import msgspec

    from baseline import runs_by_turns, two_runs
    from baseline.comparison import IncomparableError
    from baseline.comparison_text import as_markdown
    from baseline.record import RecordError, read
    from baseline.verdicts import Options

    def options(usual: float) -> Options:
        return Options(threshold=arguments.threshold or usual)

    paths = [arguments.before, *arguments.after]
    try:
        before, *after = [read(path) for path in paths]
        if pairs := runs_by_turns.pairs_of(dict(zip(map(str, paths), (before, *after), strict=True))):
            comparisons = [runs_by_turns.compare_by_turns(pairs, options(runs_by_turns.THRESHOLD))]
        else:
            comparisons = [two_runs.compare(before, one, options(two_runs.THRESHOLD)) for one in after]
        if arguments.json:
            arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(comparisons), indent=1) + b"\n")
        if arguments.markdown:
            arguments.markdown.write_text(as_markdown(comparisons), "utf-8")
        else:
            sys.stdout.write(as_markdown(comparisons))
    except (RecordError, IncomparableError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"{error.filename} cannot be written: {error.strerror}\n")
        return 2
    return int(any(comparison.worse for comparison in comparisons))


if __name__ == "__main__":
    sys.exit(main())
