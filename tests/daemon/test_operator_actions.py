"""The operator's actions: ids, running calls, cancel, reload."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.client import MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.daemon.lifecycle import running
from toold.daemon.operator_actions import OperatorActions, matching
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError, ServiceUnavailableError
from toold.protocol.input_request import CallPausedError, InputRequest
from toold.protocol.tool_call import LOCAL
from toold.store import StoreError
from toold.tools import Arguments, OrchestrationContext, tool
from websockets.asyncio.client import ClientConnection, connect

EPOCH = "0a1b2c3d4e5f"
QUIET = {"TOOLD_SIMULATE": "true", "TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http", "TOOLD_AUTH": "false"}


# --- which id is meant -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_id", "meant"),
    [
        (f"{EPOCH}-1", [f"{EPOCH}-1"]),
        ("1", [f"{EPOCH}-1"]),
        ("1f", [f"{EPOCH}-1f"]),
        (f"{EPOCH}-2", [f"{EPOCH}-20"]),
        (EPOCH, [f"{EPOCH}-1", f"{EPOCH}-1f", f"{EPOCH}-20"]),
        ("0", [f"{EPOCH}-1", f"{EPOCH}-1f", f"{EPOCH}-20"]),
        ("", []),
        ("zz", []),
    ],
)
def test_an_id_may_be_abbreviated(given_id: str, meant: list[str]) -> None:
    """A call is found by its whole id, by the part after the dash, or by a prefix, in this order."""
    assert matching(given_id, [f"{EPOCH}-1", f"{EPOCH}-1f", f"{EPOCH}-20"]) == meant


def test_a_child_id_is_its_parents_id_and_its_name() -> None:
    """With or without the part before the dash; a dash in the child's name is not that separator."""
    ids = [f"{EPOCH}-1", f"{EPOCH}-1/my-step", f"{EPOCH}-2"]
    assert matching("1/my-step", ids) == matching(ids[1], ids) == [ids[1]]
    assert matching("1", ids) == [ids[0]]
    assert matching("step", ids) == []


@given(st.sets(st.integers(1, 5000), min_size=1), st.data())
def test_a_whole_id_matches_only_its_call(numbers: set[int], data: st.DataObject) -> None:
    """Even if other ids begin with it; the same applies to the part after the dash."""
    ids = [f"{EPOCH}-{number:x}" for number in numbers]
    item = data.draw(st.sampled_from(ids))
    assert matching(item, ids) == matching(item.rpartition("-")[2], ids) == [item]


# --- of a running daemon ---------------------------------------------------------------------------------------------


@pytest.fixture
async def daemon(settings_with: Any) -> AsyncIterator[Daemon]:
    async with running(settings_with(**QUIET, TOOLD_GRACE_PERIOD_S="0.1", TOOLD_MAX_RUNNING="1")) as daemon:
        yield daemon


@pytest.fixture
def operations(daemon: Daemon) -> OperatorActions:
    return OperatorActions(
        daemon.router,
        daemon.store,
        reload=daemon.reload,
        sources=daemon.sources,
        sign_ins=daemon.sign_ins,
        agent_registry=daemon.agents.registries,
        published=daemon.publisher.published,
        settings=lambda: daemon.settings,
        problems=lambda: daemon.view.health(LOCAL)["problems"],
        sign_in_link=lambda: None,
    )


@pytest.fixture
async def peer(daemon: Daemon) -> AsyncIterator[ClientConnection]:
    """A connection with the label ``an-editor``."""
    async with connect(daemon.address().url, compression=None) as socket:
        await socket.send(json.dumps({"op": "hello", "session_id": "an-editor", "features": ["ack"]}))
        assert json.loads(await socket.recv())["ok"]
        yield socket


async def begin(peer: ClientConnection, request_id: str) -> None:
    """Have a call run, or wait, for longer than a test."""
    arguments = {"text": "the argument", "delay_ms": 60_000}
    call = {"op": "call_tool", "request_id": request_id, "name": "echo", "arguments": arguments, "timeout_ms": 90_000}
    await peer.send(json.dumps(call))
    await until(peer, "call_tool_ack")


async def until(peer: ClientConnection, op: str) -> dict[str, Any]:
    """The next frame of this op; others are skipped."""
    async with asyncio.timeout(20):
        while (frame := json.loads(await peer.recv()))["op"] != op:
            pass
    return dict(frame)


async def test_running_calls_are_shown_without_arguments(operations: OperatorActions, peer: Any) -> None:
    """With principal, tool, state and duration; the first call holds the only permit, the second waits."""
    await begin(peer, "one")
    await begin(peer, "two")
    first, second = (await operations.calls(0))["running"]
    assert (first["state"], second["state"]) == ("running", "waiting")
    assert (first["session"], first["principal"], first["tool"]) == ("an-editor", "local", "echo")
    assert first["session_id"] == second["session_id"]
    assert 0 <= first["age_s"] < 90
    assert 0 < first["remaining_s"] <= 90
    assert "the argument" not in json.dumps([first, second])


async def test_the_last_calls_come_from_the_store(operations: OperatorActions, daemon: Daemon, peer: Any) -> None:
    """As many as asked for, the last one first, with their session."""
    for number in range(3):
        call = {"op": "call_tool", "request_id": number, "name": "echo", "arguments": {"text": "the argument"}}
        await peer.send(json.dumps(call))
        await until(peer, "call_tool_res")
    await daemon.store.flush()
    shown = await operations.calls(2)
    assert shown["running"] == []
    assert [row["tool"] for row in shown["recent"]] == ["echo", "echo"]
    assert shown["recent"][0]["started_at"] >= shown["recent"][1]["started_at"]
    assert {row["session"] for row in shown["recent"]} == {"an-editor"}
    assert len({row["session_id"] for row in shown["recent"]}) == 1


async def test_a_cancelled_call_names_the_operator(
    operations: OperatorActions, daemon: Daemon, peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller gets its one answer, CANCELLED, and the operator the call as it was, even if the disk fails."""
    await begin(peer, "one")
    (row,) = (await operations.calls(0))["running"]

    async def refuse(_principal: object) -> None:
        raise ServiceUnavailableError("The disk refuses.")

    with monkeypatch.context() as failing:
        failing.setattr(daemon.router.paused, "paused_calls", refuse)
        assert (await operations.cancel(row["id"]))["state"] == "running"
    error = (await until(peer, "call_tool_res"))["error"]
    assert error["code"] == "CANCELLED"
    assert "operator" in error["message"]
    with pytest.raises(NotFoundError, match="toold calls"):
        await operations.cancel(row["id"])


async def test_an_ambiguous_id_cancels_no_call(operations: OperatorActions, peer: Any) -> None:
    """They are named, so that one can be chosen."""
    await begin(peer, "one")
    await begin(peer, "two")
    ids = [row["id"] for row in (await operations.calls(0))["running"]]
    with pytest.raises(InvalidArgumentsError, match=f"{ids[0]}, {ids[1]}"):
        await operations.cancel(ids[0][:4])
    assert [row["state"] for row in (await operations.calls(0))["running"]] == ["running", "waiting"]


async def test_an_unreadable_database_is_reported(
    operations: OperatorActions, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where ended calls were asked for; what runs is in memory."""

    async def refuse(_: int) -> None:
        raise StoreError("the database cannot be read (disk I/O error)", "disk I/O error")

    monkeypatch.setattr(daemon.store.audit, "recent", refuse)
    with pytest.raises(ServiceUnavailableError, match="disk I/O error"):
        await operations.calls(1)
    assert await operations.calls(0) == {"running": [], "recent": []}


async def test_an_invalid_configuration_is_refused_with_its_message(
    operations: OperatorActions, daemon: Daemon, tmp_path: Any
) -> None:
    """A valid one is reported by its settings."""
    (tmp_path / "toold.toml").write_text("max_waiting = 0\n")
    with pytest.raises(InvalidArgumentsError, match=r"max_waiting \(toold.toml\): must be 1 or more"):
        await operations.reload()
    (tmp_path / "toold.toml").write_text('max_waiting = 7\nhost = "::1"\n')
    assert await operations.reload() == {"reloaded": ["max_waiting"], "needs_restart": ["host"]}


# --- the tools as functions ------------------------------------------------------------------------------------------


async def test_the_stubs_of_a_toolset_by_module(operations: OperatorActions) -> None:
    """The complete modules of the functions that its programs may call."""
    lean, full = await operations.stubs("lean"), await operations.stubs("full")
    assert list(lean["modules"]) == ["tools"]
    assert "async def chat(" in lean["modules"]["tools"]
    assert "async def echo(" not in lean["modules"]["tools"]
    assert "async def echo(" in full["modules"]["tools"]


async def test_stubs_of_an_unknown_toolset_are_refused(operations: OperatorActions) -> None:
    """With the name that may be meant."""
    with pytest.raises(InvalidArgumentsError, match="no toolset 'laen'; did you mean 'lean'"):
        await operations.stubs("laen")
    with pytest.raises(InvalidArgumentsError, match="the toolsets are lean, standard, full, code, hybrid"):
        await operations.stubs("qqq")


# --- tools that sources hold back ------------------------------------------------------------------------------------


async def test_approving_a_tool_that_is_not_quarantined_is_refused(operations: OperatorActions) -> None:
    """The message lists the toolsets."""
    with pytest.raises(NotFoundError, match="no source 'files'; configured: none"):
        await operations.approve("files", "read", "v1")


async def test_the_settings_come_with_the_problems_in_full(daemon: Daemon, operations: OperatorActions) -> None:
    """The doctor shows them; `/readyz`, which needs no token, names only their kind."""
    assert (await operations.settings())["problems"] == []
    daemon.view.reload_error = "port (toold.toml): must be a whole number"
    (problem,) = (await operations.settings())["problems"]
    assert problem.endswith("port (toold.toml): must be a whole number")


async def test_a_paused_call_is_shown_and_cancelled(settings_with: Any) -> None:
    """With what it asks, but without the content, in ``activity``, ``status`` and the operator's list."""
    requests = (InputRequest("send", "approve", "echo", {"value": "the argument"}, "the text"),)

    @tool("asks", read_only=False, open_world=False, orchestration=True)
    async def asks(arguments: Arguments, context: OrchestrationContext) -> str:
        """Asks for an approval."""
        raise CallPausedError(requests, time.time() + 3600)

    async with running(settings_with(**QUIET), (asks,)) as daemon:
        client = MCPWebSocketClient(daemon.address().url)
        operations = OperatorActions(
            daemon.router, daemon.store, reload=daemon.reload, sources=daemon.sources,
            sign_ins=daemon.sign_ins, agent_registry=daemon.agents.registries,
            published=daemon.publisher.published, settings=lambda: daemon.settings, problems=list,
            sign_in_link=lambda: None,
        )  # fmt: skip
        async with client:
            call_id = (await client.call("asks", {})).structured["call_id"]
            (row,) = (await operations.calls(0))["running"]
            (session,) = (await client.call("activity", {"recent": 0})).structured["sessions"]
            (paused,) = (await client.call("status", {})).structured["paused"]
            for shown in (row, session["calls"][0], paused):
                assert (shown["id"], shown["state"]) == (call_id, "paused")
                assert shown["requests"] == [{"id": "send", "kind": "approve", "tool": "echo"}]
                assert "the argument" not in json.dumps(shown)
            assert (await operations.cancel(call_id))["tool"] == "asks"
            result = (await client.call("call_result", {"call_id": call_id})).structured
            assert (result["state"], result["error"]["code"]) == ("failed", "CANCELLED")
