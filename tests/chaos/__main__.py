"""``python -m tests.chaos``: the fault run (docs/faults.md). Exit code 1 where a promise was broken."""

import argparse
import asyncio
import logging
import random
import shutil
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from .daemon import DaemonError
from .project import ProjectError, project
from .run import Scale, run
from .tally import Tally


def main() -> int:
    """Run, print the tally, and say whose calls broke which promise."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="Break everything while clients call, and count what was lost."
    )
    parser.add_argument("--calls", type=int, default=5000, help="calls of sim_effect in all (%(default)s)")
    parser.add_argument("--clients", type=int, default=16, help="clients that make them (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="drawn unless given")
    parser.add_argument("--minutes", type=float, default=10.0, help="no call is begun later (%(default)g)")
    parser.add_argument("--no-postgres", action="store_true", help="without PostgreSQL and PostgREST")
    arguments = parser.parse_args()
    if arguments.calls < 1 or arguments.clients < 1 or arguments.minutes <= 0:
        parser.error("calls, clients and minutes must be more than 0")
    scale = Scale(arguments.calls, arguments.clients, arguments.seed, arguments.minutes * 60)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended on the way out
    logging.getLogger("toold").setLevel(logging.ERROR)  # of each break there is a warning
    print(f"{scale.calls} calls of {scale.clients} clients, seed {scale.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="toold-chaos-"))
    try:
        outcome = asyncio.run(_run(directory, scale, with_postgres=not arguments.no_postgres))
    except (ProjectError, DaemonError) as error:
        print(f"{error}\nkept for a look: {directory}", file=sys.stderr)
        return 1
    except BaseException:
        shutil.rmtree(directory)
        raise
    print(report(outcome))
    if outcome.kept:
        shutil.rmtree(directory)
        return 0
    print(f"kept for a look: {directory}\nagain: make chaos ARGS='--seed {scale.seed} --calls {scale.calls}'")
    return 1


async def _run(directory: Path, scale: Scale, *, with_postgres: bool) -> Tally:
    async with AsyncExitStack() as stack:
        supabase = await stack.enter_async_context(project()) if with_postgres else None
        return await run(directory, scale, supabase, lambda line: print(line, flush=True))


def report(outcome: Tally) -> str:
    """The figures, a line each, and the verdict."""
    lines = ["", *(f"{name:<32}{value:>8}" for name, value in outcome.figures.items()), ""]
    for promise, ids in outcome.breaches.items():
        lines += [f"BROKEN: {promise}: {len(ids)}", *(f"  {each}" for each in ids[:20])] if ids else []
    return "\n".join([*lines, "every promise was kept" if outcome.kept else "promises were broken"])


if __name__ == "__main__":
    sys.exit(main())
