"""Hold runs of the same daemon against each other, and count how often compare.py says that something changed."""

import argparse
import sys
from pathlib import Path

from baseline.ending import end_as_by_ctrl_c
from baseline.needs import require
from baseline.options import count, names, positive

EXAMPLES = """examples:
  aa.py                            50 comparisons of a daemon with itself: false alarms
  aa.py --comparisons 5            a first look
  aa.py --keep aa/                 keep the records; the same again goes on where it was cut off, and judges them anew
  aa.py --slower 1.2 --comparisons 10    one daemon's echo and chat really take a fifth longer: are they found?

Each run has two simulated daemons of its own. Exit codes: 0 few false alarms, 1 more than chance explains, 2 options,
matrix or directory are wrong, 3 a daemon could not be started, 130 interrupted."""


def main() -> int:
    """Read the options and make the runs."""
    parser = argparse.ArgumentParser(
        prog="aa.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--comparisons", type=count, default=50, metavar="N", help="how many (50)")
    parser.add_argument("--pairs", type=count, default=6, metavar="N", help="pairs of runs a comparison (6)")
    parser.add_argument("--iterations", type=count, default=6, metavar="N", help="calls a tool and run (6)")
    parser.add_argument("--tools", type=names, metavar="NAME,…", help="these tools; by default a dozen of every kind")
    parser.add_argument("--slower", type=positive, metavar="FACTOR", help="slow the other daemon instead, such as 1.5")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="where to keep the records")
    arguments = parser.parse_args()
    if arguments.slower and arguments.tools:
        parser.error("--slower has its own tools; leave out --tools")
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
