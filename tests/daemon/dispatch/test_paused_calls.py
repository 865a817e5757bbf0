"""Paused calls on a real store: they wait for a person without a task, over restarts, and resume once."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from toold.protocol.input_request import CallPausedError, InputDecision, InputRequest
from toold.protocol.tool_call import LOCAL, Principal
from toold.store import Retention, decision_hash

from .paused_call_daemon import HOUR, Daemon
from .scripted_tools import make_tool

DAY = 24 * HOUR
EVE = Principal("token:eve")
APPROVE = {"id": "send", "decision": "approve"}


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    daemon = Daemon(tmp_path / "toold.db")
    yield daemon
    if daemon.process is not None:
        await daemon.process.end()


async def test_an_approved_call_goes_on_after_a_restart_and_25_hours(daemon: Daemon) -> None:
    """The client gets an answer, no task waits, results outlive ``result_ttl_s``, and each write happens once."""
    daemon.office.expires_s = 7 * DAY
    process = await daemon.start()
    call_id = await process.pause()
    assert process.harness.router.accepted == 0
    process = await daemon.start(later_s=25 * HOUR)
    info = await process.info(call_id)
    assert (info.state, [request.id for request in info.requests]) == ("paused", ["send"])
    assert info.expires_at == pytest.approx(time.time() + 7 * DAY - 25 * HOUR, abs=60)
    assert daemon.office.clerks == 1
    assert (await process.decide(call_id, APPROVE)).value == {
        "call_id": call_id, "decided": [{"id": "send", "decision": "approve"}], "open": [],
    }  # fmt: skip
    info = await process.ended(call_id)
    assert info.result is not None
    assert info.result.structured == {"send": "approve", "why": None, "tone": None}
    assert daemon.office.written == ["draft", "mail"]


@pytest.mark.parametrize(
    ("decision", "answer", "written"),
    [
        ({"decision": "approve", "arguments": {"text": "kinder mail"}}, ("approve", None), ["draft", "kinder mail"]),
        ({"decision": "reject", "text": "Not on a Friday."}, ("reject", "Not on a Friday."), ["draft"]),
    ],
)
async def test_a_person_edits_or_rejects(daemon: Daemon, decision: Any, answer: Any, written: list[str]) -> None:
    """The tool gets the changed arguments, or the reason."""
    process = await daemon.start()
    call_id = await process.pause()
    assert (await process.decide(call_id, {"id": "send", **decision})).ok
    result = (await process.ended(call_id)).result
    assert result is not None
    assert (result.value["send"], result.value["why"]) == answer
    assert daemon.office.written == written


async def test_a_detached_call_pauses_under_its_own_id(daemon: Daemon) -> None:
    """It has one id from its start to its end, whether it runs, is paused or has ended."""
    process = await daemon.start()
    call_id = (await process.call("clerk", detach=True)).text
    while (await process.info(call_id)).state != "paused":
        await asyncio.sleep(0.005)
    assert (await process.call("call_status", call_id=call_id)).value["requests"] == [
        {"id": "send", "kind": "approve", "tool": "write", "arguments": {"text": "mail"}, "text": "write has effects"}
    ]
    assert (await process.decide(call_id, APPROVE)).ok
    assert (await process.ended(call_id)).state == "done"
    assert daemon.office.written == ["draft", "mail"]


async def test_the_call_goes_on_after_the_last_decision(daemon: Daemon) -> None:
    """Open requests are listed; the daemon may restart between two decisions, and between the last one and the run."""
    process = await daemon.start()
    call_id = await process.pause(question=True)
    assert (await process.decide(call_id, APPROVE)).value["open"] == ["tone"]
    process = await daemon.start()
    assert [request.id for request in (await process.info(call_id)).requests] == ["tone"]
    assert (await process.decide(call_id, {"id": "tone", "decision": "answer", "text": "dry"})).value["open"] == []
    process = await daemon.start()  # it may be running
    result = (await process.ended(call_id)).result
    assert result is not None
    assert result.structured == {"send": "approve", "why": None, "tone": "dry"}
    assert daemon.office.written == ["draft", "mail"]


async def test_the_same_decision_twice_runs_once(daemon: Daemon) -> None:
    """A repeat gets the same answer, even after the call has ended; another decision is an error."""
    process = await daemon.start()
    call_id = await process.pause()
    first, second = await asyncio.gather(process.decide(call_id, APPROVE), process.decide(call_id, APPROVE))
    assert first.value == second.value
    await process.ended(call_id)
    process = await daemon.start()
    assert (await process.decide(call_id, APPROVE)).value == first.value
    other = await process.decide(call_id, {"id": "send", "decision": "reject"})
    assert other.error is not None
    assert "another decision already" in other.error.message
    assert daemon.office.written == ["draft", "mail"]
    assert daemon.office.clerks == 2


async def test_a_request_that_expires_is_decided_as_expired(daemon: Daemon) -> None:
    """The run continues; a later decision is refused."""
    process = await daemon.start()
    call_id = await process.pause()
    process = await daemon.start(later_s=2 * HOUR)
    result = (await process.ended(call_id)).result
    assert result is not None
    assert result.value["send"] == "expired"
    assert daemon.office.written == ["draft"]
    late = await process.decide(call_id, APPROVE)
    assert late.error is not None
    assert "another decision already" in late.error.message


async def test_a_jump_of_the_systems_clock_expires_nothing(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a restart and after it, forward and back: the rest of the time stays the same, and so do the results."""
    process = await daemon.start()
    call_id = await process.pause()
    real = time.time
    for jump_s in (400 * DAY, -400 * DAY):
        monkeypatch.setattr(time, "time", lambda jump_s=jump_s: real() + jump_s)
        for _ in range(2):
            info = await process.info(call_id)
            assert info.state == "paused"
            assert info.expires_at == pytest.approx(time.time() + HOUR, abs=120)
            process = await daemon.start()
    assert (await process.decide(call_id, APPROVE)).ok
    assert (await process.ended(call_id)).state == "done"
    assert daemon.office.written == ["draft", "mail"]


async def test_only_its_principal_sees_and_decides(daemon: Daemon) -> None:
    """For another principal it does not exist, in the words for a call that does not exist."""
    process = await daemon.start()
    call_id = await process.pause()
    refused = await process.decide(call_id, APPROVE, principal=EVE)
    missing = await process.decide("nope", APPROVE, principal=EVE)
    assert refused.error is not None
    assert missing.error is not None
    assert refused.error.code == missing.error.code == "NOT_FOUND"
    assert refused.error.message == missing.error.message.replace("nope", call_id)
    assert (await process.info(call_id, EVE)).state == "unknown"
    assert (await process.value("call_status", EVE, call_id=call_id))["state"] == "unknown"
    assert (await process.call("cancel_call", EVE, call_id=call_id)).error is not None
    assert (await process.info(call_id)).state == "paused"


@pytest.mark.parametrize(
    ("decision", "problem"),
    [
        ({"id": "sned", "decision": "approve"}, "no request 'sned'"),
        ({"id": "send", "decision": "answer", "text": "yes"}, "takes approve or reject, not answer"),
        ({"id": "send", "decision": "reject", "arguments": {}}, "reject takes no arguments"),
        ({"id": "tone", "decision": "approve"}, "takes answer, not approve"),
        ({"id": "tone", "decision": "answer"}, "answer needs a text"),
    ],
)
async def test_a_decision_that_does_not_fit_is_refused(daemon: Daemon, decision: Any, problem: str) -> None:
    """The error lists the open requests, and none of the decisions is made."""
    process = await daemon.start()
    call_id = await process.pause(question=True)
    error = (await process.decide(call_id, APPROVE, decision)).error
    if decision["id"] == "send":  # the second decision on this request
        problem = "another decision already"
    assert error is not None
    assert error.code == "VALIDATION_ERROR"
    assert problem in error.message
    assert error.message.endswith("Open requests: 'send', 'tone'.")
    assert len((await process.info(call_id)).requests) == 2


async def test_changed_arguments_must_fit_the_tool(daemon: Daemon) -> None:
    """A person learns at once what is wrong with them, and can decide again."""

    async def looks(arguments: Any, context: Any) -> Any:
        decision = context.decision("look")
        if decision is None:
            request = InputRequest("look", "approve", "call_status", {"call_id": "x"})
            raise CallPausedError((request,), time.time() + HOUR)
        return decision.arguments

    daemon.office.tools.append(make_tool("looks", looks, read_only=False, orchestration=True))
    process = await daemon.start()
    call_id = await process.pause("looks")
    error = (await process.decide(call_id, {"id": "look", "decision": "approve", "arguments": {"id": "y"}})).error
    assert error is not None
    assert "id is not an argument" in error.message
    assert (await process.decide(call_id, {"id": "look", "decision": "approve", "arguments": {"call_id": "y"}})).ok
    result = (await process.ended(call_id)).result
    assert result is not None
    assert result.structured == {"call_id": "y"}


async def test_a_paused_call_is_cancelled(daemon: Daemon) -> None:
    """By its principal or the operator; its answer says so, and it takes no further decision."""
    process = await daemon.start()
    call_id, other = await process.pause(), await process.pause()
    assert (await process.value("cancel_call", call_id=call_id)) == {"call_id": call_id, "cancelled": True}
    assert await process.harness.router.cancel_by_operator(other)
    process = await daemon.start()
    for each in (call_id, other):
        result = (await process.info(each)).result
        assert result is not None
        assert result.error is not None
        assert (result.error.code, result.error.executed) == ("CANCELLED", "maybe")
        assert not (await process.decide(each, APPROVE)).ok
    assert daemon.office.written == ["draft"] * 2
    assert [row.outcome for row in await daemon.audit() if row.id in (call_id, other)] == ["CANCELLED"] * 2


async def test_a_parent_pauses_with_its_child(daemon: Daemon) -> None:
    """The request has the child's name; afterwards both resume where they were."""
    process = await daemon.start()
    call_id = await process.pause("boss")
    assert [request.id for request in (await process.info(call_id)).requests] == ["clerk/send"]
    process = await daemon.start(later_s=HOUR / 2)
    assert (await process.decide(call_id, {"id": "clerk/send", "decision": "approve"})).ok
    result = (await process.ended(call_id)).result
    assert result is not None
    assert result.structured == {"clerk": {"send": "approve", "why": None, "tone": None}}
    assert daemon.office.written == ["draft", "mail", "filed"]


async def test_a_step_of_a_pipeline_cannot_wait(daemon: Daemon) -> None:
    """The step of a pipeline and the item of a batch fail with a clear error, and nothing is paused."""
    process = await daemon.start()
    answer = await process.call("execute_pipeline", steps=[{"id": "a", "tool_name": "clerk"}])
    batch = await process.call("execute_batch", tool_name="clerk", items=[{}])
    for result in (answer, batch):
        assert "clerk waits for a person" in json.dumps([result.text, result.error and result.error.message])
    assert await process.harness.router.paused.paused_calls(LOCAL) == []


async def test_paused_calls_are_bounded(daemon: Daemon) -> None:
    """Beyond ``max_paused`` a call that has to wait fails; other principals and detached calls do not count."""
    process = await daemon.start(max_paused=1, max_detached=1)
    first = await process.pause()
    error = (await process.call("clerk")).error
    assert error is not None
    assert (error.code, error.executed) == ("OVER_CAPACITY", "maybe")
    assert (await process.value("clerk", EVE))["paused"]
    detached = (await process.call("clerk", detach=True)).text
    ended = (await process.ended(detached)).result
    assert ended is not None
    assert ended.outcome == "OVER_CAPACITY"
    assert (await process.info(first)).state == "paused"


async def test_each_decision_has_an_audit_row(daemon: Daemon) -> None:
    """The row says who decided what, without the content unless content is stored; an expiry has one too."""
    process = await daemon.start()
    call_id, expiring = await process.pause(), await process.pause()
    assert (await process.decide(call_id, APPROVE | {"arguments": {"text": "x"}})).ok
    assert (await process.decide(call_id, APPROVE | {"arguments": {"text": "x"}})).ok
    await process.ended(call_id)
    process = await daemon.start(later_s=2 * HOUR)
    await process.ended(expiring)
    rows = [row for row in await daemon.audit() if row.id.endswith("/send") and row.tool == "agent_decide"]
    assert [(row.principal, row.outcome, row.message) for row in reversed(rows)] == [
        ("local", "ok", f"approve, with changed arguments: request send of call {call_id}, to call write"),
        ("local", "ok", f"expired: request send of call {expiring}, to call write"),
    ]


async def test_a_run_that_is_dropped_says_so(daemon: Daemon) -> None:
    """A paused call beyond ``agents_keep_bytes`` or ``agents_keep_days`` ends with the reason."""
    daemon.office.expires_s = 100 * DAY
    process = await daemon.start(agents_keep_days=2)
    old = await process.pause()
    process = await daemon.start(later_s=DAY)
    assert (await process.info(old)).state == "paused"
    process = await daemon.start(later_s=DAY, retention=Retention(unfinished_bytes=400))
    result = (await process.ended(old)).result
    assert result is not None
    assert result.error is not None
    assert "agents_keep_days" in result.error.message
    large = [await process.pause() for _ in range(4)]
    process = await daemon.start(retention=Retention(unfinished_bytes=400))
    result = (await process.ended(large[0])).result
    assert result is not None
    assert result.error is not None
    assert (result.error.code, "agents_keep_bytes" in result.error.message) == ("RESULT_EXPIRED", True)
    assert (await process.info(large[-1])).state == "paused"


async def test_a_paused_run_is_not_resumed_by_another_call(daemon: Daemon) -> None:
    """Both would write; the error names the paused call."""
    process = await daemon.start()
    call_id = await process.pause()
    error = (await process.call("clerk", resume=call_id)).error
    assert error is not None
    assert (error.code, f"The call {call_id} continues this run" in error.message) == ("REQUEST_ID_CONFLICT", True)


async def test_a_tool_cannot_pause_for_what_is_decided(daemon: Daemon) -> None:
    """A tool that asks the same again after the decision fails, instead of pausing for ever."""

    async def stubborn(arguments: Any, context: Any) -> Any:
        raise CallPausedError((InputRequest("send", "question", text="?"),), time.time() + HOUR)

    daemon.office.tools.append(make_tool("stubborn", stubborn, read_only=False, orchestration=True))
    process = await daemon.start()
    call_id = await process.pause("stubborn")
    assert (await process.decide(call_id, {"id": "send", "decision": "answer", "text": "!"})).ok
    result = (await process.ended(call_id)).result
    assert result is not None
    assert result.error is not None
    assert "paused again for requests that have been decided" in result.error.message


def test_decisions_are_compared_by_content() -> None:
    """Two decisions are the same if their content is, whatever the order of their arguments."""
    first = InputDecision("approve", {"a": 1, "b": 2})
    assert decision_hash(first) == decision_hash(InputDecision("approve", {"b": 2, "a": 1}))
    assert decision_hash(first) != decision_hash(InputDecision("approve"))
