"""``python -m tests.chaos.cluster``: a fault run against three nodes on one PostgreSQL database (docs/cluster.md).

The clients, their calls and the verdict are those of ``make chaos``. A balancer sends each connection to a node at
random, and breaks connections; nodes are killed, paused for longer than their lease, drained and cut off from the
database; the database is restarted and killed, slow, full (simulated) and at its connection limit.
"""

import argparse
import asyncio
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from .__main__ import report
from .callers import HEARTBEAT_S, KINDS, library_caller
from .cluster_evidence import audit_rows, limits, verify_chains
from .cluster_nodes import FENCED, NODES, Database, Node, database, start_nodes
from .daemon import DaemonError
from .detached_caller import detached_caller
from .evidence import effect_lines, effect_log
from .history import EffectWatch, history
from .limited_callers import PRINCIPALS, limit_settings, limited_specs, quota_tables, token_options
from .linearizability import check, save
from .project import ProjectError
from .proxy import Proxy, draw
from .run import IN_FLIGHT, Client, Course, Say, Scale, damage, end_all, make_calls, report_progress
from .stand_in_vendor import NODE_KEY, StandInVendor
from .tally import DETACHED, Evidence, Tally, tally

LEASE_S: Final = 4.0
"""Shorter than in production, so that a run of minutes has many leases that end."""
LATE_S: Final = 2.5 * LEASE_S + 2.0
"""How late a call may be that a node holds back: the longest fault, and some time to work off what has waited."""
LIMITS_FROM: Final = 1_000
"""A run with fewer calls need not reach each limit."""
BETWEEN: Final = (30, 120)
"""The range of answers between the beginnings of two faults."""
HISTORY: Final = "history.jsonl"
"""What the run observed, for ``python -m tests.chaos.linearizability``."""
_KINDS: Final = (*KINDS, ("detached", detached_caller))


@dataclass(frozen=True, slots=True)
class ClusterScale:
    """The size of a run."""

    run: Scale
    faults: tuple[str, ...]
    """The names of ``FAULTS`` to draw from, each as often as it is listed."""


async def run_cluster(directory: Path, scale: ClusterScale, say: Say = lambda _: None) -> Tally:
    """Make the calls, inject the faults, and judge the outcome.

    Raises:
        DaemonError: a node did not start, or did not stop cleanly.
        ProjectError: PostgreSQL is not installed.
    """
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(database())
        vendor = await stack.enter_async_context(StandInVendor())
        limited = limit_settings(scale.run.calls, LATE_S)
        settings = {
            "TOOLD_CONFIG": str(
                vendor.write_settings(directory, quota_tables(limited), provider_budget=limited.provider_budget)
            ),
            "TOOLD_LEASE_S": str(LEASE_S),
            "TOOLD_PING_INTERVAL_S": str(HEARTBEAT_S),
            "TOOLD_PING_TIMEOUT_S": str(HEARTBEAT_S),
            "TOOLD_MAX_RUNNING_PER_SESSION": str(IN_FLIGHT - 1),
            "TOOLD_AUDIT_KEEP_DAYS": "100000",
        }
        options = {"second": (), **{each: token_options(each, limited) for each in PRINCIPALS}}
        began = time.time()
        nodes, token = await start_nodes(stack, directory, server, settings, tokens=options, vendor_key=NODE_KEY)
        tokens = {name: (directory / f"{name}.token").read_text() for name in options}
        more = [
            Client(f"{each}-{number}", library_caller, tokens[each], limited_specs(each, f"{number}", scale.run.seed))
            for number, each in enumerate(PRINCIPALS)
        ]
        upstream = partial(_next_ports, nodes, random.Random(f"{scale.run.seed} balancer"))
        balancer = await stack.enter_async_context(Proxy(upstream, partial(draw, scale.run.seed)))
        course, watch = Course(scale.run.calls), EffectWatch([effect_log(node.daemon.state) for node in nodes])
        faults = [_inject(scale, course, nodes, server)]
        watchers = [watch.watch(), report_progress(course, balancer, say)]
        watchers += [_supervise(course, node) for node in nodes]
        tasks = [asyncio.create_task(each) for each in (*faults, *watchers)]
        stack.push_async_callback(end_all, tasks)
        unexpected = await make_calls(
            scale.run, course, balancer, [token, tokens["second"]], tasks[: len(faults)], _KINDS, more
        )
        for node in nodes:
            await node.turn.acquire()  # a node that is starting cannot be stopped in an orderly way
        await end_all(tasks[len(faults) :])
        for node in nodes:
            await node.stop()
        watch.look()
        server.remove_simulated_disk()
        rows = await asyncio.to_thread(audit_rows, server)
        chains = await verify_chains(nodes[0], len(rows))
        judged, of_limits = await asyncio.to_thread(
            limits, limited, server, nodes, vendor, watch, course.calls, began, directory
        )
    logs = [node.daemon.logged() for node in nodes]
    observed = list(history(course.calls, watch.effects, rows))
    save(directory / HISTORY, observed)
    detached = {call.id for call in course.calls if call.tool == DETACHED}
    evidence = Evidence(
        [line for node in nodes for line in effect_lines(node.daemon.state) if line not in detached],
        rows,
        None,
        sum(log.count("Traceback") for log in logs),
    )
    outcome = tally([call for call in course.calls if call.id not in detached], evidence)
    breaches = {
        **outcome.breaches,
        "frames that answer no call": unexpected,
        "calls whose history no order explains": [str(each) for each in check(observed)],
        "limits exceeded": [f"{each.name}: {each}" for each in judged if each.exceeded],
        "limits that were not reached, so nothing is shown": [
            f"{each.name}: {each}" for each in judged if not each.reached and scale.run.calls >= LIMITS_FROM
        ],
        "audit chains": chains.problems,
    }
    relays = sum(log.count('"connection relayed"') for log in logs)
    declared_dead = sum(log.count('"node declared dead"') for log in logs)
    seen = {
        "relayed connections": relays,
        "nodes declared dead": declared_dead,
        "detached calls": len(detached),
        "  whose start has no answer": sum(call.given_up for call in course.calls),
        "judged observations": len(observed),
        "audit chains": chains.number,
        "  rows verified": chains.checked,
        **of_limits,
    }
    return Tally({**outcome.figures, **damage(course, balancer), **seen}, breaches)


def _next_ports(nodes: Sequence[Node], chance: random.Random) -> Sequence[int]:
    """The order in which the balancer tries the nodes: it takes the first one that accepts the connection."""
    ports = [node.daemon.port for node in nodes]
    chance.shuffle(ports)
    return ports


# --- faults ----------------------------------------------------------------------------------------------------------


async def _kill(node: Node, chance: random.Random, _: Database) -> None:
    """The process ends at once, and starts again after a moment."""
    async with node.turn:
        await node.kill()
        await asyncio.sleep(chance.choice([0, chance.uniform(0, 3.0)]))
        await node.start()


async def _drain(node: Node, chance: random.Random, _: Database) -> None:
    """The process stops as for an upgrade, and starts again."""
    async with node.turn:
        await node.stop()
        await asyncio.sleep(chance.uniform(0, 1.0))
        await node.start()


async def _pause(node: Node, chance: random.Random, _: Database) -> None:
    """The process does not run for a while, mostly longer than its lease. Then it continues, or finds itself fenced."""
    node.daemon.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(chance.uniform(0.5, 2.5 * LEASE_S))
    finally:
        node.daemon.signal(signal.SIGCONT)


async def _cut_off(node: Node, chance: random.Random, _: Database) -> None:
    """The node does not reach the database: connections are reset, or nothing passes."""
    with node.link.cut(silent=chance.random() < 0.5):
        await asyncio.sleep(chance.uniform(0.5, 2.0 * LEASE_S))


async def _restart_database(_: Node, chance: random.Random, server: Database) -> None:
    """The database stops in an orderly way, or is killed, and starts again."""
    await asyncio.to_thread(server.stop, kill=chance.random() < 0.5)
    await asyncio.sleep(chance.uniform(0, 1.0))
    await asyncio.to_thread(server.start)


async def _slow_down(node: Node, chance: random.Random, _: Database) -> None:
    """The database is slow for the node."""
    with node.link.slow(chance.uniform(0.02, 0.4)):
        await asyncio.sleep(chance.uniform(0.5, 2.0 * LEASE_S))


async def _refuse_connections(node: Node, chance: random.Random, server: Database) -> None:
    """The database is at its connection limit, and the node loses its connections."""
    await asyncio.to_thread(server.refuse_connections, node.name)
    await asyncio.sleep(chance.uniform(0.5, 1.5 * LEASE_S))
    await asyncio.to_thread(server.accept_connections)


async def _fill(_: Node, chance: random.Random, server: Database) -> None:
    """SIMULATED: the disk of the database is full."""
    await asyncio.to_thread(server.fill, full=True)
    await asyncio.sleep(chance.uniform(0.5, 1.5 * LEASE_S))
    await asyncio.to_thread(server.fill, full=False)


FAULTS: Final = {
    "node killed": _kill,
    "node drained": _drain,
    "node paused": _pause,
    "node cut off": _cut_off,
    "database slow": _slow_down,
    "database restarted": _restart_database,
    "connections refused": _refuse_connections,
    "database full": _fill,
}
OF_THE_DATABASE: Final = frozenset({"database restarted", "connections refused", "database full"})
ALL: Final = (
    ("node killed",) * 4
    + ("node drained",) * 2
    + ("node paused",) * 2
    + ("node cut off",) * 2
    + ("database slow", "connections refused", "database full")
    + ("database restarted",) * 2
)


async def _inject(scale: ClusterScale, course: Course, nodes: Sequence[Node], server: Database) -> None:
    """One fault after the other; sometimes the next one begins before the last one has ended."""
    chance = random.Random(f"{scale.run.seed} faults")
    running = set[asyncio.Task[None]]()
    try:
        while await course.wait_for_answers(chance.randrange(*scale.run.between)):
            name, node = chance.choice(scale.faults), chance.choice(nodes)
            running.add(asyncio.create_task(_guarded(name, node, random.Random(chance.random()), server)))
            course.happened[name] += 1
            if chance.random() < 0.5:
                await asyncio.wait(running)
            for task in [task for task in running if task.done()]:
                running.discard(task)
                task.result()
    finally:
        if running:
            await asyncio.wait(running)
    for task in running:
        task.result()


async def _guarded(name: str, node: Node, chance: random.Random, server: Database) -> None:
    """A fault, while no other one of its kind of victim runs."""
    async with server.turn if name in OF_THE_DATABASE else node.fault:
        await FAULTS[name](node, chance, server)


async def _supervise(course: Course, node: Node) -> None:
    """Starts a node again that found itself fenced, as a supervisor would."""
    while True:
        await node.daemon.ended()
        async with node.turn:  # held by a fault that restarts the node itself
            code = node.daemon.exit_code
            if code is None:
                continue
            if code != FENCED:
                raise DaemonError(f"{node.name} ended with {code}:\n{node.daemon.logged()[-3000:]}")
            course.happened["node fenced"] += 1
            await node.start()


# --- the command -----------------------------------------------------------------------------------------------------


def main() -> int:
    """Run, print the figures, and name the calls that broke a promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000, help="number of sim_effect calls (%(default)s)")
    parser.add_argument("--clients", type=int, default=16, help="number of clients (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="random by default")
    parser.add_argument("--minutes", type=float, default=20.0, help="start no call after this (%(default)g)")
    parser.add_argument("--faults", default=",".join(ALL), help="which faults, separated by commas")
    arguments = parser.parse_args()
    faults = tuple(arguments.faults.split(","))
    if arguments.calls < 1 or arguments.clients < 1 or arguments.minutes <= 0 or set(faults) - set(FAULTS):
        parser.error(f"calls, clients and minutes must be greater than 0, and faults of {', '.join(FAULTS)}")
    run = Scale(arguments.calls, arguments.clients, arguments.seed, arguments.minutes * 60, BETWEEN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the started processes on the way out
    logging.getLogger("toold").setLevel(logging.ERROR)  # every broken connection logs a warning
    print(f"{run.calls} calls of {run.clients} clients to {NODES} nodes, seed {run.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="toold-chaos-"))
    say: Callable[[str], None] = partial(print, flush=True)
    try:
        outcome = asyncio.run(run_cluster(directory, ClusterScale(run, faults), say))
    except (ProjectError, DaemonError) as error:
        print(f"{error}\ndata kept in {directory}", file=sys.stderr)
        return 1
    except BaseException:
        shutil.rmtree(directory)
        raise
    print(report(outcome))
    if outcome.kept:
        shutil.rmtree(directory)
        return 0
    print(f"data kept in {directory}\nrun again: make chaos-cluster ARGS='--seed {run.seed} --calls {run.calls}'")
    return 1


if __name__ == "__main__":
    sys.exit(main())
