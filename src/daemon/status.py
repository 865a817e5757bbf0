"""What the daemon tells of itself: to probes, to ``status``, and to whoever says hello."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..providers import Provider
from ..store import CallRow, Totals
from ..tools import Registry
from .dispatch import Permits, ProviderGate, Router, RunningCall


def health(
    router: Router, *, version: str, started_at: float, connections: int, problems: Iterable[str]
) -> dict[str, Any]:
    """For ``/readyz`` and ``health``: ready where calls are accepted; what else is wrong: ``problems``."""
    state: dict[str, Any] = {
        "status": "ready" if router.accepting else "stopping",
        "version": version,
        "uptime_s": round(time.time() - started_at, 1),
        "connections": connections,
        "calls": router.accepted,
        "problems": list(problems),
    }
    if not router.accepting:
        state["reasons"] = ["the daemon goes down and takes no new calls"]
    return state


def limits(router: Router, gates: Mapping[str, ProviderGate]) -> dict[str, Any]:
    """Every bound on what runs, with what is in use and who waits."""
    providers = {name: {**_permits(gate.permits), "abandoned": gate.abandoned} for name, gate in gates.items()}
    return {
        "running": _permits(router.permits),
        "accepted": router.accepted,
        "max_waiting": router.bounds.max_waiting,
        "max_accepted_per_session": router.bounds.max_accepted_per_session,
        "providers": providers,
    }


def provider_rows(
    labels: Mapping[str, str], providers: Mapping[str, Provider], absent: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One object a vendor, in a stable order: whether it can be asked, and what to set where it cannot."""
    rows = []
    for name, label in labels.items():
        provider = providers.get(name)
        rows.append(
            {
                "name": name,
                "label": label,
                "available": provider is not None,
                "simulated": provider.simulated if provider else False,
                "road": provider.road if provider else None,
                "missing": absent.get(name, ""),
            }
        )
    return rows


def call_row(row: CallRow) -> dict[str, Any]:
    """One of the last calls, for people: who, what, how it ended, how long it took; never its arguments."""
    return {
        "id": row.id,
        "started_at": row.started_at,
        "session": row.session_label,
        "tool": row.tool,
        "outcome": row.outcome,
        "message": row.message,
        "latency_ms": row.latency_ms,
        "model": row.model,
        "simulated": row.simulated,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
    }


def ended_row(row: CallRow) -> dict[str, Any]:
    """One of the last calls, for the operator: ``call_row`` and whose it was."""
    return {**call_row(row), "session_id": row.session_id, "principal": row.principal}


def running_row(running: RunningCall, now: float) -> dict[str, Any]:
    """A call that is not answered yet, for the operator; never its arguments. ``now`` is an instant of its clock."""
    session, latest = running.session, running.latest
    return {
        "id": running.id,
        "session": session.label,
        "session_id": session.id,
        "principal": session.principal.name,
        "client": session.client.name,
        "tool": running.tool.name,
        "state": _state(running),
        "started_at": running.started_at,
        "age_s": round(now - running.started, 3),
        "left_s": round(max(0.0, running.deadline - now), 3),
        "progress": None if latest is None else msgspec.to_builtins(latest),
    }


def _state(running: RunningCall) -> str:
    """``waiting`` for its turn, ``running``, or ``ending``: told to, and not there yet."""
    if running.ended_at is not None:
        return "ending"
    return "running" if running.running else "waiting"


def totals_row(totals: Totals) -> dict[str, Any]:
    """The sums of all calls, as plain data."""
    plain: dict[str, Any] = msgspec.to_builtins(totals)
    return plain


def instructions(registry: Registry, *, simulated: bool) -> str:
    """What a client is told when it connects: what exists, from the live registry."""
    names = ", ".join(tool.name for tool in registry.tools)
    text = f"toold answers tool calls. Tools: {names}. list_tools has their schemas."
    if simulated:
        text += " Kimi and GLM are SIMULATED here: their answers are made up by a local simulator and say so."
    return text


def _permits(permits: Permits) -> dict[str, int]:
    return {"limit": permits.limit, "in_use": permits.in_use, "waiting": permits.waiting}
