"""The daemon's reports on itself, from plain values."""

import asyncio
import time
from typing import Any, cast

import msgspec
import pytest
from toold.daemon.dispatch import ProviderLimiter, Router
from toold.daemon.observability import status_report
from toold.fairness import Permits
from toold.providers import GLM, KIMI, Provider
from toold.store import CallRow, CallTotals
from toold.store.store_rows import Sums


class OneProvider:
    """A provider that is there."""

    name, label, simulated, transport_name = "kimi", "Kimi (Moonshot)", True, "httpx 1"


def router(**fields: Any) -> Router:
    """What ``status`` reads of a router."""
    limits = type("Limits", (), {"max_waiting": 1000, "max_accepted_per_session": 32})
    plain = {"accepting": True, "accepted": 3, "permits": Permits("running", 24), "limits": limits}
    return cast("Router", type("Router", (), plain | fields))


def health(of: Router) -> dict[str, Any]:
    return status_report.health(of, version="1.2", started_at=time.time() - 10, connections=2, problems=["a disk"])


def test_ready_while_calls_are_accepted() -> None:
    """With uptime, counts, and what is wrong without being a reason not to call."""
    state = health(router())
    assert state.pop("uptime_s") == pytest.approx(10, abs=5)
    assert state == {"status": "ready", "version": "1.2", "connections": 2, "calls": 3, "problems": ["a disk"]}


def test_stopping_says_why() -> None:
    """A probe that gets 503 shows the reasons."""
    state = health(router(accepting=False))
    assert state["status"] == "stopping"
    assert "accepts no new calls" in state["reasons"][0]


async def test_limits_have_permits_in_use_and_waiting_calls() -> None:
    """The daemon's and each provider's, with calls that were given up and still run."""
    gate = ProviderLimiter(cast("Provider", OneProvider()), 1, on_error=lambda *_: None)
    async with gate.permits:
        waiting = asyncio.create_task(gate.permits.__aenter__())
        await asyncio.sleep(0)
        limits = status_report.limits(router(), {"kimi": gate})
    await waiting
    await gate.permits.__aexit__(None, None, None)
    assert limits["running"] == {"limit": 24, "in_use": 0, "waiting": 0}
    assert limits["providers"] == {"kimi": {"limit": 1, "in_use": 1, "waiting": 1, "abandoned": 0}}
    assert (limits["max_waiting"], limits["max_accepted_per_session"]) == (1000, 32)


def test_providers_are_in_the_order_of_their_labels() -> None:
    """A configured provider has its transport; an unconfigured one has the setting that is missing."""
    rows = status_report.provider_rows(
        (GLM, KIMI),
        {"kimi": cast("Provider", OneProvider())},
        {"glm": "set GLM_API_KEY"},
    )
    assert [row["name"] for row in rows] == ["glm", "kimi"]
    glm, kimi = rows
    assert (glm["lists_all"], kimi["lists_all"]) == (False, True)
    assert (glm["available"], glm["missing"], glm["transport"]) == (False, "set GLM_API_KEY", None)
    assert (kimi["available"], kimi["simulated"], kimi["transport"], kimi["missing"]) == (True, True, "httpx 1", "")


def test_a_call_row_has_no_arguments() -> None:
    """It has neither their content nor their shape, because any client may request the last calls."""
    row = CallRow(
        id="c-1",
        started_at=1.0,
        transport="websocket",
        principal="local",
        session_id="s",
        session_label="label",
        client="tests",
        request_id='"1"',
        tool="chat",
        outcome="ok",
        arguments='{"prompt":"private"}',
        latency_ms=12.5,
        model="glm-4.6",
        input_tokens=3,
    )
    reported = status_report.call_row(row)
    assert (reported["tool"], reported["outcome"], reported["session"], reported["latency_ms"]) == (
        "chat",
        "ok",
        "label",
        12.5,
    )
    assert "private" not in msgspec.json.encode(reported).decode()


def test_totals_are_plain_data() -> None:
    """As they go into a frame."""
    sums = Sums(calls=2, errors=1, cost={"USD": 0.5})
    reported = status_report.totals_row(
        CallTotals(since=1.0, all=sums, by_tool={"echo": sums}, by_outcome={"ok": 1}, by_model=[])
    )
    assert reported["all"] == {"calls": 2, "errors": 1, "input_tokens": 0, "output_tokens": 0, "cost": {"USD": 0.5}}
    assert (reported["since"], reported["by_outcome"], reported["by_model"]) == (1.0, {"ok": 1}, [])
