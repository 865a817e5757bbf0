"""The daemon's reports on its state, for probes, ``status`` and the operator."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ...fairness import Permits
from ...providers import Provider, VendorInfo
from ...store import CallRow, CallTotals, DailyUsage, StoredDetachedCall
from ..dispatch import ProviderLimiter, Router, RunningCall, open_requests
from ..hosted_registries import HostedRegistries


def health(
    router: Router,
    *,
    version: str,
    started_at: float,
    connections: int,
    problems: Iterable[str],
    may_answer: bool = True,
) -> dict[str, Any]:
    """The report of ``/readyz`` and ``health``: ``status`` is ``ready`` if calls are accepted. ``may_answer``: whether
    this node may answer for sessions that can be resumed.
    """
    state: dict[str, Any] = {
        "status": "stopping" if not router.accepting else "ready" if may_answer else "unavailable",
        "version": version,
        "uptime_s": round(time.time() - started_at, 1),
        "connections": connections,
        "calls": router.accepted,
        "problems": list(problems),
    }
    if not router.accepting:
        state["reasons"] = ["the daemon is stopping and accepts no new calls"]
    elif not may_answer:
        state["reasons"] = ["the node does not reach the database: other nodes serve its sessions"]
    return state


def agent_health(name: str, *, hosted: bool, accepting: bool) -> dict[str, Any]:
    """The report of ``/health`` for a daemon that runs as one agent, in the format of its predecessor."""
    if hosted and accepting:
        return {"status": "healthy", "agent": name}
    reason = "the daemon is stopping" if hosted else "the registry has answered no definition that can be hosted"
    return {"status": "unhealthy", "agent": name, "reasons": [reason]}


def limits(router: Router, limiters: Mapping[str, ProviderLimiter]) -> dict[str, Any]:
    """Every concurrency limit, with the permits in use and the waiting calls."""
    providers = {
        name: {**_permits(limiter.permits), "abandoned": limiter.abandoned} for name, limiter in limiters.items()
    }
    return {
        "running": _permits(router.permits),
        "accepted": router.accepted,
        "max_waiting": router.limits.max_waiting,
        "max_accepted_per_session": router.limits.max_accepted_per_session,
        "providers": providers,
    }


def provider_rows(
    vendors: Iterable[VendorInfo], providers: Mapping[str, Provider], absent: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One object per vendor, with its availability and, if unavailable, the settings that it needs."""
    rows = []
    for vendor in vendors:
        provider = providers.get(vendor.name)
        rows.append(
            {
                "name": vendor.name,
                "label": vendor.label,
                "available": provider is not None,
                "simulated": provider.simulated if provider else False,
                "transport": provider.transport_name if provider else None,
                "missing": absent.get(vendor.name, ""),
                "lists_all": vendor.lists_all,
            }
        )
    return rows


def registry_report(registry: HostedRegistries, *, operator: bool) -> dict[str, Any]:
    """The registry of agents and the state of each agent; only operators see its address and the problems."""
    states = (
        registry.states if operator else [msgspec.structs.replace(state, problem=None) for state in registry.states]
    )
    report: dict[str, Any] = {"agents": msgspec.to_builtins(states)}
    return {"url": registry.settings.base, **report} if operator and registry.settings else report


def call_row(row: CallRow) -> dict[str, Any]:
    """A recent call without its arguments: session, tool, outcome, latency, tokens."""
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
    """A recent call for the operator: ``call_row`` with session id and principal."""
    return {**call_row(row), "session_id": row.session_id, "principal": row.principal}


def running_row(running: RunningCall, now: float) -> dict[str, Any]:
    """A running call for the operator, without its arguments. ``now`` is monotonic time."""
    session, latest = running.session, running.last_progress
    return {
        "id": running.id,
        "parent": None if running.parent is None else running.parent.id,
        "session": session.label,
        "session_id": session.id,
        "principal": session.principal.name,
        "client": session.client.name,
        "tool": running.tool.name,
        "state": running.public_state,
        "started_at": running.started_at,
        "age_s": round(now - running.started, 3),
        "remaining_s": round(max(0.0, running.deadline - now), 3),
        "progress": None if latest is None else msgspec.to_builtins(latest),
    }


def paused_row(call: StoredDetachedCall, now: float) -> dict[str, Any]:
    """A paused call with the kinds of its requests, but not their content. ``now`` is Unix time."""
    return {
        "id": call.call_id,
        "tool": call.tool,
        "state": "paused",
        "age_s": round(max(0.0, now - call.started_at), 3),
        "expires_at": call.expires_at,
        "requests": [{"id": request.id, "kind": request.kind, "tool": request.tool} for request in open_requests(call)],
    }


def totals_row(totals: CallTotals) -> dict[str, Any]:
    """The totals of all calls, as plain data."""
    plain: dict[str, Any] = msgspec.to_builtins(totals)
    return plain


def usage_rows(usage: Iterable[DailyUsage]) -> list[dict[str, Any]]:
    """Usage of the vendors: one object per day, newest first, with totals by provider, model and tool."""
    return [_day(day, list(parts)) for day, parts in itertools.groupby(usage, key=lambda part: part.day)]


def _day(day: str, usage: Sequence[DailyUsage]) -> dict[str, Any]:
    return {
        "day": day,
        **_sum(usage),
        "by_provider": _by(usage, lambda part: part.provider),
        "by_model": _by(usage, lambda part: part.model),
        "by_tool": _by(usage, lambda part: part.tool),
    }


def _by(usage: Iterable[DailyUsage], key: Callable[[DailyUsage], str]) -> dict[str, dict[str, Any]]:
    return {name: _sum(list(parts)) for name, parts in itertools.groupby(sorted(usage, key=key), key=key)}


def _sum(usage: Sequence[DailyUsage]) -> dict[str, Any]:
    return {
        "completions": sum(part.completions for part in usage),
        "input_tokens": sum(part.input_tokens for part in usage),
        "output_tokens": sum(part.output_tokens for part in usage),
        "cached_tokens": sum(part.cached_tokens for part in usage),
        "cost": cost_of(usage),
        "estimated": any(part.estimated for part in usage),
        "simulated": all(part.simulated for part in usage),
    }


def cost_of(usage: Iterable[DailyUsage]) -> dict[str, float]:
    """The cost by currency."""
    cost: dict[str, float] = {}
    for part in usage:
        if part.currency:
            cost[part.currency] = round(cost.get(part.currency, 0.0) + part.cost, 9)
    return cost


def _permits(permits: Permits) -> dict[str, int]:
    """The use of a limit; ``reserved`` explains why calls may wait although not all permits are in use."""
    shown = {"limit": permits.limit, "in_use": permits.in_use, "waiting": permits.waiting}
    return {**shown, "reserved": permits.reserved} if permits.reserved else shown
