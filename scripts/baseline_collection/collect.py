"""Collect a baseline: call each tool of a daemon repeatedly and record the timings."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from baseline.ending import end_as_by_ctrl_c
from baseline.matrix import SHIPPED
from baseline.needs import require
from baseline.options import count, count_or_none, counts, daemon_or_checkout, names, positive, record_path
from baseline.record import Load

EXAMPLES = """examples:
  collect.py --simulate                                       every tool, ten times, with a temporary daemon
  collect.py --tools echo,chat --iterations 50                two tools of the daemon on this machine
  collect.py --daemon wss://tools.example/ --toolset lean     another daemon; its token is in TOOLD_TOKEN
  collect.py --daemon ws://127.0.0.1:8079/ --candidate ws://127.0.0.1:9079/    two daemons in alternation
  collect.py --simulate --candidate ../branch --repeat 8 --iterations 30 --out runs.json    two checkouts
  collect.py --simulate --tools echo --iterations 500 --concurrency 1,2,4,8,16,32    find the knee of the throughput
  collect.py --simulate --tools echo --iterations 2000 --rate 200    200 calls per second, without waiting for answers
  collect.py --continue baseline-20260101T120000Z.ndjson      resume an interrupted run

Ctrl-C ends a run early and writes the calls made so far. Exit codes: 0 all calls were made, 2 invalid options or files,
3 the daemon is unreachable or stopped, 130 interrupted. See docs/baselines.md."""


def main() -> int:
    """Parse the options and perform the run."""
    parser = argparse.ArgumentParser(
        prog="collect.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--daemon", metavar="URL", help="the daemon's address (default: the daemon on this machine)")
    which.add_argument("--simulate", action="store_true", help="start a temporary daemon with simulated vendors")
    which.add_argument(
        "--continue",
        dest="draft",
        type=Path,
        metavar="NDJSON",
        help="resume an interrupted run; takes no other options",
    )
    parser.add_argument(
        "--candidate",
        type=daemon_or_checkout,
        metavar="URL|DIRECTORY",
        help="a second daemon, called in alternation with the first; its record is OUT-candidate.json. A directory is "
        "a checkout to start a daemon from",
    )
    parser.add_argument(
        "--repeat",
        type=count,
        metavar="N",
        help="perform N numbered runs, each with newly started daemons",
    )
    parser.add_argument("--tools", type=names, metavar="NAME,…", help="only these tools (default: all of the toolset)")
    parser.add_argument("--toolset", metavar="NAME", help="the toolset (default: full)")
    parser.add_argument("--iterations", type=count, metavar="N", help="recorded calls per tool and load (10)")
    parser.add_argument("--warmup", type=count_or_none, metavar="N", help="unrecorded calls per tool before them (2)")
    load = parser.add_mutually_exclusive_group()
    load.add_argument(
        "--concurrency", type=counts, metavar="N,…", help="concurrent calls; one or more levels, comma-separated (1)"
    )
    load.add_argument("--rate", type=positive, metavar="N", help="calls per second, without waiting for earlier ones")
    parser.add_argument(
        "--timeout", type=positive, metavar="S", help="timeout per call in seconds (default: the tool's)"
    )
    parser.add_argument(
        "--matrix",
        type=Path,
        default=SHIPPED,
        metavar="TOML",
        help="the tools' arguments (default: the matrix shipped with toold)",
    )
    parser.add_argument("--out", type=record_path, metavar="JSON", help="path of the record (baseline-TIME.json)")
    arguments = parser.parse_args()
    own = ("candidate", "repeat", "out", "tools", "toolset", "iterations", "warmup", "concurrency", "rate", "timeout")
    given = {name: getattr(arguments, name) for name in own if getattr(arguments, name) is not None}
    if arguments.draft and given:
        parser.error(f"--continue uses the options of the interrupted run; remove --{next(iter(given))}")
    require(["numpy", "scipy"])
    end_as_by_ctrl_c()

    from rich.console import Console

    from baseline.collecting import CollectionError
    from baseline.matrix import MatrixError
    from baseline.record import SIMULATE, RecordError
    from baseline.running import EXIT_GONE, EXIT_INTERRUPTED, Wish, begin_run, begin_runs, continue_run

    console = Console(stderr=True, width=None if sys.stderr.isatty() else 120)
    try:
        if arguments.draft:
            return continue_run(arguments.draft, arguments.matrix, console)
        rate, at_once = given.pop("rate", None), given.pop("concurrency", (1,))
        out = given.pop("out", None) or Path(f"baseline-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json")
        repeat = given.pop("repeat", None)
        wish = Wish(
            daemon=SIMULATE if arguments.simulate else arguments.daemon,
            loads=(Load(rate_per_s=rate),) if rate else tuple(Load(concurrency=number) for number in at_once),
            matrix=arguments.matrix,
            timeout_s=given.pop("timeout", None),
            **given,
        )
        return begin_runs(wish, out, repeat, console) if repeat else begin_run(wish, out, console)
    except (MatrixError, RecordError, ValueError) as error:
        console.print(str(error), markup=False, soft_wrap=True, highlight=False)
        return 2
    except CollectionError as error:
        console.print(str(error), markup=False, soft_wrap=True, highlight=False)
        return EXIT_GONE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
