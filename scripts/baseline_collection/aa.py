"""Compare runs of the same daemon with each other, and count how often compare.py reports a change (A/A test)."""

import argparse
import sys
from pathlib import Path

from baseline.ending import end_as_by_ctrl_c
from baseline.needs import require
from baseline.options import count, names, positive

EXAMPLES = """examples:
  aa.py                            50 comparisons of a daemon with itself: false alarms
  aa.py --comparisons 5            a first look
  aa.py --keep aa/                 store the records; repeat the command to resume after an interruption
  aa.py --slower 1.2 --comparisons 10    make echo and chat of one daemon 20 % slower: are they found?

Each run starts two simulated daemons. Exit codes: 0 few false alarms, 1 more than chance explains, 2 invalid options,
matrix or directory, 3 a daemon could not be started, 130 interrupted."""


def main() -> int:
    """Parse the options and perform the runs."""
    parser = argparse.ArgumentParser(
        prog="aa.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--comparisons", type=count, default=50, metavar="N", help="number of comparisons (50)")
    parser.add_argument("--pairs", type=count, default=6, metavar="N", help="pairs of runs per comparison (6)")
    parser.add_argument("--iterations", type=count, default=6, metavar="N", help="calls per tool and run (6)")
    parser.add_argument(
        "--tools", type=names, metavar="NAME,…", help="only these tools (default: a dozen, of every kind)"
    )
    parser.add_argument(
        "--slower", type=positive, metavar="FACTOR", help="slow one daemon down by this factor, such as 1.5"
    )
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="directory for the records")
    arguments = parser.parse_args()
    if arguments.slower and arguments.tools:
        parser.error("--slower uses fixed tools; remove --tools")
    require(["numpy", "scipy"])
    end_as_by_ctrl_c()

    from baseline.collecting import CollectionError
    from baseline.matrix import MatrixError
    from baseline.record import RecordError
    from baseline.running import EXIT_GONE, EXIT_INTERRUPTED
    from baseline.trials import SLOWED_TOOLS, TOOLS, Plan, run_trials

    try:
        plan = Plan(
            comparisons=arguments.comparisons,
            pairs=arguments.pairs,
            iterations=arguments.iterations,
            tools=SLOWED_TOOLS if arguments.slower else arguments.tools or TOOLS,
            slower=arguments.slower,
        )
        return run_trials(plan, arguments.keep)
    except (MatrixError, RecordError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except CollectionError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_GONE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
