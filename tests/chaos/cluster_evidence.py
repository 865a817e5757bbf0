"""Reads the evidence of a fault run of a cluster: the audit rows, the chains, the nodes, and what is booked."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from .cluster_nodes import Database, Node
from .history import EffectWatch
from .limit_verdict import (
    Judged,
    LimitEvidence,
    LimitSettings,
    NodeProcess,
    at_once_with_dead,
    judge_limits,
    process_of,
    save_limits,
)
from .stand_in_vendor import StandInVendor
from .tally import Call, Row

LIMITS: Final = "limits.json"
"""What was counted, in addition to the history of calls."""
LIMITED: Final = "RATE_LIMITED"


def audit_rows(server: Database) -> list[Row]:
    """All audit rows in the database."""
    query = "SELECT json_build_array(id, request_id, outcome, executed) FROM toold.call ORDER BY number"
    rows = [json.loads(line) for line in server.sql(query).splitlines()]
    return [Row(each, json.loads(request_id), *rest) for each, request_id, *rest in rows]


# --- chains ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chains:
    """What ``toold audit verify`` says of the chains of all nodes."""

    number: int
    checked: int
    """Rows of all chains that are unchanged and in their place."""
    problems: Sequence[str]


async def verify_chains(node: Node, rows: int) -> Chains:
    """Runs ``toold audit verify`` with the key of the nodes. ``rows``: how many there are; each belongs to a chain."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "toold", "audit", "verify", "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=node.daemon.env,
        cwd=node.daemon.state.parent,
    )
    output, errors = await process.communicate()
    found = json.loads(output) if output else {"intact": False, "chains": []}
    return judge_chains(found, process.returncode or 0, errors.decode(), rows)


def judge_chains(found: dict[str, Any], code: int, errors: str, rows: int) -> Chains:
    """What was found, as ``--json`` prints it. Pure."""
    chains = found["chains"]
    checked = sum(chain["checked"] for chain in chains)
    problems = [
        f"chain {chain['number']}: {problem['fault']}: {problem['message']}"
        for chain in chains
        for problem in chain["problems"]
    ]
    if code or not found["intact"]:
        problems.append(f"toold audit verify ended with {code}: {errors.strip()[-500:]}")
    if checked != rows:
        problems.append(f"{rows} rows, but {checked} were verified")
    return Chains(len(chains), checked, problems)


# --- limits ----------------------------------------------------------------------------------------------------------


def node_processes(server: Database, nodes: Sequence[Node]) -> list[NodeProcess]:
    """All processes of the nodes, in the order of their starts."""
    query = (
        "SELECT json_build_array(name, extract(epoch FROM started_at), extract(epoch FROM ended_at)) FROM toold.node "
        "WHERE name <> '' ORDER BY started_at"
    )
    rows = [json.loads(line) for line in server.sql(query).splitlines()]
    started = [NodeProcess(name, began, *([] if dead is None else [dead, dead])) for name, began, dead in rows]
    return with_ends(started, {node.name: (node.killed, node.drained) for node in nodes})


def with_ends(
    started: Sequence[NodeProcess], ends: dict[str, tuple[Sequence[float], Sequence[float]]]
) -> list[NodeProcess]:
    """Adds when processes were killed, and which have stopped in an orderly way; both as times by node. Pure."""
    ended = {each: each for each in started}
    for node, (killed, drained) in ends.items():
        for at in killed:
            process = process_of(node, at, started)
            ended[process] = replace(process, lost=min(at, process.lost))
        for at in drained:
            process = process_of(node, at, started)
            ended[process] = replace(process, lost=float("inf"))
    return [ended[each] for each in started]


def limits(
    settings: LimitSettings,
    server: Database,
    nodes: Sequence[Node],
    vendor: StandInVendor,
    watch: EffectWatch,
    calls: Sequence[Call],
    began: float,
    directory: Path,
) -> tuple[list[Judged], dict[str, int | str]]:
    """What was seen of the limits, and figures about it. ``began``: when the run began, in Unix time. Writes what was
    counted to ``directory``.
    """
    query = "SELECT json_build_array(scope, sum(spent)) FROM toold.budget GROUP BY scope"
    booked = dict(json.loads(line) for line in server.sql(query).splitlines())
    refused = Counter(
        call.id.split("-", 1)[0] for call in calls for answer in call.answers[:1] if answer.outcome == LIMITED
    )
    processes = node_processes(server, nodes)
    days = (datetime.now(UTC).date() - datetime.fromtimestamp(began, UTC).date()).days + 1
    evidence = LimitEvidence(
        requests=vendor.requests,
        processes=processes,
        effects=[(effect.line, effect.before) for effect in watch.effects],
        looks=vendor.looks,
        booked=booked,
        refused=refused,
        cancelled=[call.id for call in calls if any(answer.outcome == "CANCELLED" for answer in call.answers)],
        days=days,
    )
    save_limits(directory / LIMITS, settings, evidence)
    judged = judge_limits(settings, evidence)
    of_permits = [each for each in vendor.requests if each.provider == "permits"]
    late = [each for each in vendor.requests if each.arrived > process_of(each.node, each.arrived, processes).dead]
    figures: dict[str, int | str] = {each.name: str(each) for each in judged}
    return judged, {
        **figures,
        "  with those of ended nodes": at_once_with_dead(of_permits),
        "requests to the vendor": len(vendor.requests),
        "  whose caller had gone": sum(each.answered == float("inf") for each in vendor.requests),
        "  of nodes declared dead before": len(late),
        "requests to the API": len(vendor.looks),
        "calls that a limit refused": sum(refused.values()),
    }
