"""The doctor's checks of a database that several nodes share, and of these nodes."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import httpx
import msgspec

from ...protocol.daemon_address import DaemonAddress
from ...store import NodeRow, StoreError
from ...version import __version__
from ..cluster.cluster_node import peer_secret
from ..cluster.configuration_digests import details_of, differing, digests
from ..cluster.peer_client import ANSWER_S, PeerSilentError, ask_peer
from ..cluster.peer_key import PeerKey
from ..cluster.shared_files import shared_files
from ..config.setting_sources import SettingsError
from ..config.settings import Settings
from ..store_opening import open_bucket
from .check_result import CheckResult

if TYPE_CHECKING:  # psycopg is an extra
    from ...store.postgres.pg_inspection import PostgresInspection

SLOW_ROUND_TRIP_S: Final = 0.02
"""A longer round trip is reported as slow: a journalled call waits for two commits."""
MAX_CLOCK_SKEW_S: Final = 5.0
"""A larger difference of clocks is reported. Leases depend only on the database's clock, but times in audit rows and
the expiry of tokens depend on the nodes' clocks.
"""
NODE_CONNECTIONS: Final = 9
"""The connections that one node opens: the writer's, and those for reads, for limits, and for notifications."""
_SHOWN: Final = 5
_BUCKET_REMEDY: Final = "see docs/cluster.md, Retained results; until then, results of more than 1 MiB are refused"


async def shared_database(settings: Settings, running: DaemonAddress | None) -> list[CheckResult]:
    """Checks ``store``; no checks if the database is embedded. ``running``: the daemon of this state directory."""
    if settings.store is None:
        return []
    try:
        secret = peer_secret(settings)
    except SettingsError as error:
        return [CheckResult("cluster secret", "fail", str(error), "write it, the same on each node")]
    try:
        found = await asyncio.to_thread(_inspect, settings.store.get_secret_value())
    except StoreError as error:
        message, _, remedy = str(error).partition("; ")
        return [CheckResult("store", "fail", message, remedy or "see docs/cluster.md")]
    key = PeerKey(secret.get_secret_value())
    own = digests(settings, shared_files(settings), key.digest)
    name = settings.machine_name
    return [
        CheckResult("store", "ok", f"PostgreSQL {found.version} at {found.place}, schema {found.schema.version}"),
        durability(found),
        pooler(found),
        round_trip(found),
        connections(found),
        clock(found),
        node_name(name, found.nodes, is_running=running is not None),
        *node_settings(own, found.nodes),
        *await asyncio.to_thread(result_bucket, settings.results_bucket),
        *await running_nodes(found.nodes, key, clock_ahead_s=found.clock_ahead_s),
    ]


async def running_nodes(nodes: Sequence[NodeRow], key: PeerKey, *, clock_ahead_s: float) -> list[CheckResult]:
    """Asks all nodes for their problems at the same time, and waits at most 3 s. ``clock_ahead_s`` is how far the
    database's clock is ahead of this machine's.
    """
    async with httpx.AsyncClient(timeout=ANSWER_S, trust_env=False) as http:
        return await asyncio.gather(
            *(_running_node(http, key, node, clock_ahead_s) for node in nodes if node.state != "dead")
        )


async def _running_node(http: httpx.AsyncClient, key: PeerKey, node: NodeRow, ahead_s: float) -> CheckResult:
    asked = time.time()
    try:
        answer = msgspec.json.decode(await ask_peer(http, key, node, "/summary", {}), type=NodeSummary)
    except PeerSilentError as error:
        return silent_node(node, str(error))
    except msgspec.DecodeError:
        return CheckResult(f"node {node.name}", "ok", "it answers; its version is another one")
    return answering_node(node, answer, clock_off_s=answer.at - (asked + time.time()) / 2 - ahead_s)


def silent_node(node: NodeRow, reason: str) -> CheckResult:
    """The check of a node that does not answer although its lease is valid."""
    return CheckResult(
        f"node {node.name}",
        "fail",
        f"it is {node.state} and does not answer ({reason}): calls, status and relays of sessions fail there",
        "check peer_host and the ports of that node, that its process is not stopped, and cluster_secret",
    )


def answering_node(node: NodeRow, answer: "NodeSummary", *, clock_off_s: float) -> CheckResult:
    """The check of a node that has answered; ``clock_off_s`` is how far its clock is ahead of the database's."""
    shown = f"{node.state}, {answer.connections} connections, {answer.calls} calls"
    if answer.problems:
        listed = "; ".join(answer.problems[:_SHOWN]) + ("; …" if len(answer.problems) > _SHOWN else "")
        return CheckResult(f"node {node.name}", "warn", f"{shown}; problems: {listed}", "see the log of that node")
    if abs(clock_off_s) > MAX_CLOCK_SKEW_S:
        direction = "ahead of" if clock_off_s > 0 else "behind"
        return CheckResult(
            f"node {node.name}",
            "warn",
            f"{shown}; its clock is {abs(clock_off_s):.0f} s {direction} the database's",
            "synchronise the clocks (NTP)",
        )
    return CheckResult(f"node {node.name}", "ok", f"{shown}, no problems")


class NodeSummary(msgspec.Struct):
    """The answer of a node at ``/peer/summary``."""

    connections: int
    calls: int
    problems: list[str]
    at: float
    """Unix time in seconds, by its clock."""


def _inspect(address: str) -> "PostgresInspection":
    try:
        from ...store.postgres.pg_inspection import inspect_postgres  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        message = f"PostgreSQL needs the package {error.name}; pip install 'toold[postgres]'"
        raise StoreError(message, message) from None
    return inspect_postgres(address)


def result_bucket(url: str | None) -> list[CheckResult]:
    """Whether the bucket of large results can be written, read and emptied; no check without a bucket."""
    if url is None:
        return []
    try:
        open_bucket(url).check()
    except SettingsError as error:
        return [CheckResult("results bucket", "fail", str(error), _BUCKET_REMEDY)]
    except StoreError as error:
        return [CheckResult("results bucket", "fail", error.reason, _BUCKET_REMEDY)]
    return [CheckResult("results bucket", "ok", f"{url} can be written, read and emptied")]


def durability(found: "PostgresInspection") -> CheckResult:
    """Whether an acknowledged commit survives a power cut."""
    off = [name for name, on in (("fsync", found.fsync), ("synchronous_commit", found.synchronous_commit)) if not on]
    if not off:
        return CheckResult("store durability", "ok", "commits are on disk when they are acknowledged")
    return CheckResult(
        "store durability",
        "fail",
        f"{' and '.join(off)} off: a crash of the database can lose calls that were answered",
        f"turn on {' and '.join(off)} in postgresql.conf",
    )


def pooler(found: "PostgresInspection") -> CheckResult:
    """Whether a pooler gives each transaction another session."""
    if not found.shares_connections:
        return CheckResult("store connection", "ok", "each connection has its session")
    return CheckResult(
        "store connection",
        "fail",
        "a pooler in transaction mode is in front of the database: prepared statements and locks do not work",
        "connect to the database itself, or to the pooler's port for session mode (Supabase: 5432, not 6543)",
    )


def round_trip(found: "PostgresInspection") -> CheckResult:
    """Checks how long a statement takes."""
    shown = f"{found.round_trip_s * 1000:.1f} ms"
    if found.round_trip_s < SLOW_ROUND_TRIP_S:
        return CheckResult("store round trip", "ok", shown)
    return CheckResult(
        "store round trip",
        "warn",
        f"{shown}: a call that may have effects waits for two commits",
        "run the nodes in the same region as the database",
    )


def connections(found: "PostgresInspection") -> CheckResult:
    """Whether one more node could connect."""
    shown = f"{found.free_connections} free; a node opens up to {NODE_CONNECTIONS}"
    if found.free_connections >= NODE_CONNECTIONS:
        return CheckResult("store connections", "ok", shown)
    return CheckResult("store connections", "warn", shown, "raise max_connections of the database")


def clock(found: "PostgresInspection") -> CheckResult:
    """Whether this machine and the database agree on the time."""
    ahead = found.clock_ahead_s
    if abs(ahead) <= MAX_CLOCK_SKEW_S:
        return CheckResult("clock", "ok", f"within {abs(ahead):.1f} s of the database's")
    direction = "behind" if ahead > 0 else "ahead of"
    return CheckResult(
        "clock",
        "warn",
        f"this machine is {abs(ahead):.0f} s {direction} the database: leases are not affected, but times in audit "
        "rows, deadlines of detached calls and the expiry of tokens are",
        "synchronise the clocks (NTP)",
    )


def node_name(name: str, nodes: Sequence[NodeRow], *, is_running: bool) -> CheckResult:
    """Whether another process has the name of this node."""
    live = [node for node in nodes if node.state != "dead"]
    holder = next((node for node in live if node.name == name), None)
    others = ", ".join(f"{node.name} ({node.state})" for node in live if node is not holder) or "none"
    if holder is None or is_running:
        return CheckResult("node", "ok", f"{name}; other nodes: {others}")
    return CheckResult(
        "node",
        "warn",
        f"a node named {name} is {holder.state} and is not the daemon of this state directory",
        "give each node its own node_name; if that process has ended, the next start takes the name over",
    )


def node_settings(own: dict[str, str], nodes: Sequence[NodeRow]) -> list[CheckResult]:
    """Whether the other nodes have the same settings and version as this one."""
    checks = []
    for node in nodes:
        details = details_of(node)
        if node.state == "dead" or not details.settings:
            continue
        if details.version != __version__:
            message = f"node {node.name} runs toold {details.version}, this is {__version__}"
            checks.append(CheckResult("node settings", "ok", message))
        names = differing(own, details.settings)
        if names:
            shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            checks.append(
                CheckResult(
                    "node settings",
                    "warn",
                    f"node {node.name} has other values of: {shown}",
                    "deploy the same settings and files on each node, and restart them",
                )
            )
    return checks or [CheckResult("node settings", "ok", "the same on all nodes")]
