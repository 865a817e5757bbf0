"""A call that resumes an earlier run: its child calls replay their results or run again."""

from typing import Any

import msgspec
import pytest
from toold.daemon.dispatch.call_outcome import stored_result
from toold.daemon.dispatch.child_call_replay import earlier_result
from toold.protocol.arguments_digest import arguments_digest
from toold.protocol.error_codes import (
    OutcomeUnknownError,
    RequestIdConflictError,
    ResultExpiredError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from toold.protocol.tool_call import LOCAL, Metadata, Principal, TextContent, Timings, ToolResult, encode_result
from toold.store import StoredCall

from .child_call_tools import say
from .scripted_tools import hang


def kept(state: str, result: bytes | None = None, **fields: Any) -> StoredCall:
    plain: dict[str, Any] = {
        "session_id": "test-1", "request_key": "step", "echo_id": False, "tool": "write",
        "arguments_hash": arguments_digest({"a": 1}), "local": False, "state": state, "at": 1.0,
        "result": result,
    }  # fmt: skip
    return StoredCall(**plain | fields)


DONE = ToolResult(Metadata(1.0, Timings()), (TextContent("done"),))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (kept("done", encode_result(DONE)), "replayed"),
        (kept("interrupted"), OutcomeUnknownError),
        (kept("expired"), ResultExpiredError),
        (kept("done", encode_result(DONE), arguments_hash=arguments_digest({"a": 2})), RequestIdConflictError),
        (kept("done", encode_result(DONE), tool="other"), RequestIdConflictError),
        (kept("done", b"damaged"), ResultExpiredError),
    ],
    ids=["done", "cut off", "expired", "other arguments", "another tool", "damaged"],
)
def test_a_stored_write_is_replayed_or_refused(make_tool: Any, known: StoredCall, expected: Any) -> None:
    """A finished one is replayed; one that may have taken effect does not run again."""
    tool = make_tool("write", say, read_only=False)
    arguments = {"a": 1}
    if expected == "replayed":
        result = earlier_result(known, stored_result(known), tool, arguments)
        assert result is not None
        assert (result.outputs, result.metadata.replayed) == (DONE.outputs, True)
    else:
        with pytest.raises(expected):
            earlier_result(known, stored_result(known), tool, arguments)


def test_a_failure_is_replayed_for_any_arguments(make_tool: Any) -> None:
    """A failed call cannot be mistaken for another, and its arguments may have been corrected."""
    failed = ToolResult(Metadata(1.0, Timings()), error=ToolExecutionError("broken").to_tool_error())
    known = kept("done", encode_result(failed))
    result = earlier_result(known, failed, make_tool("write", say, read_only=False), {"mended": True})
    assert result is not None
    assert (result.error, result.metadata.replayed) == (failed.error, True)


@pytest.mark.parametrize("state", ["interrupted", "expired"])
@pytest.mark.parametrize("kind", [{"read_only": True}, {"read_only": False, "orchestration": True}], ids=str)
def test_repeatable_calls_run_again(make_tool: Any, state: str, kind: dict[str, bool]) -> None:
    """Calls without a second effect, and orchestration calls, whose children are looked up themselves."""
    tool = make_tool("write", say, open_world=True, **kind)
    assert earlier_result(kept(state), None, tool, {"a": 1}) is None


class EffectTools:
    """Tools that record their runs, and one that calls them; ``broken`` fails while a flag is set."""

    def __init__(self, make_tool: Any, make_orchestration: Any) -> None:
        self.done: list[str] = []
        self.broken = True
        self.results: list[ToolResult] = []
        self.tools = [
            make_orchestration(self._run, "run"),
            make_orchestration(self._run, "other_run"),
            make_tool("write", self._write, read_only=False),
            make_tool("fail", self._fail, read_only=False),
        ]

    async def _write(self, arguments: Any, context: Any) -> str:
        self.done.append(arguments.get("text"))
        return "written"

    async def _fail(self, arguments: Any, context: Any) -> str:
        if self.broken:
            raise ToolExecutionError("Not yet.", executed="no")
        return "written after all"

    async def _run(self, arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        first = await context.call("write", {"text": arguments.get("text", "one")}, name="first")
        second = await context.call("fail", {}, name="second")
        if second.error is not None and second.metadata.replayed:
            second = await context.call("fail", {}, name="second#2")
        self.results += first, second
        return {"id": context.call_id, "codes": [result.outcome for result in (first, second)]}


async def test_a_resumed_run_repeats_nothing(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """A finished child is replayed from the earlier run, in any session of the same principal. A failed one can be
    retried under another name, and the next resume finds both.
    """
    effects = EffectTools(make_tool, make_orchestration)
    harness = make_harness(effects.tools)
    first = (await harness.call(harness.session("one"), 1, "run")).structured
    assert first["codes"] == ["ok", "TOOL_EXECUTION_ERROR"]
    effects.broken = False
    second = (await harness.call(harness.session("two"), 2, "run", arguments={"resume": first["id"]})).structured
    assert second["codes"] == ["ok", "ok"]
    third = (await harness.call(harness.session("two"), 3, "run", arguments={"resume": second["id"]})).structured
    assert third["codes"] == ["ok", "ok"]
    assert effects.done == ["one"]
    assert [result.metadata.replayed for result in effects.results[2:]] == [True, None, True, True]
    assert [running.id for running, _, _ in harness.recorder.ended_calls if running.tool.name == "fail"] == [
        f"{first['id']}/second", f"{second['id']}/second#2",
    ]  # fmt: skip


async def test_another_call_under_a_known_name_is_a_conflict(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """A changed step is neither replayed nor run."""
    effects = EffectTools(make_tool, make_orchestration)
    harness = make_harness(effects.tools)
    first = (await harness.call(harness.session(), 1, "run")).structured
    repeat = await harness.call(harness.session(), 2, "run", arguments={"resume": first["id"], "text": "two"})
    assert repeat.structured["codes"][0] == "REQUEST_ID_CONFLICT"
    assert effects.done == ["one"]


@pytest.mark.parametrize("case", ["unknown", "another tool's", "another principal's"])
async def test_a_run_of_another_principal_is_not_found(
    make_harness: Any, make_tool: Any, make_orchestration: Any, case: str
) -> None:
    """Only a run of the same tool and principal can be resumed, and an unknown run is an error."""
    effects = EffectTools(make_tool, make_orchestration)
    harness = make_harness(effects.tools)
    session = harness.session()
    first = (await harness.call(session, 1, "run")).structured
    resume = "nothing-1" if case == "unknown" else first["id"]
    if case == "another principal's":
        assert session.principal == LOCAL
        session.principal = Principal("somebody")
    tool = "other_run" if case == "another tool's" else "run"
    result = await harness.call(session, 2, tool, arguments={"resume": resume})
    assert (result.error.code, effects.done) == ("NOT_FOUND", ["one"])


async def test_an_active_run_cannot_be_resumed(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """Two calls would do the same work concurrently."""

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        return (await context.call("hang", {}, name="step")).outcome

    harness = make_harness([make_orchestration(run, "run"), make_tool("hang", hang)])
    session = harness.session()
    first = harness.submit(session, 1, "run")
    await harness.until(lambda: session.permits.in_use)
    error = (await harness.call(session, 2, "run", arguments={"resume": first.id})).error
    assert (error.code, first.id in error.message) == ("REQUEST_ID_CONFLICT", True)
    await harness.router.close("The test is over.", 0)


async def test_interrupted_children_are_unknown_or_run_again(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """After a crash a started write is unknown, and repeatable calls run again; nested calls resume too."""
    ran: list[str] = []

    async def trace(arguments: Any, context: Any) -> str:
        ran.append(arguments.get("text"))
        return "ran"

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        names = ("write", "read", "inner") if context.call_id.count("/") == 0 else ("write",)
        results = [await context.call(name, {"text": name}, name=name) for name in names]
        return [result.outcome for result in results]

    tools = [
        make_orchestration(run, "run"),
        make_orchestration(run, "inner"),
        make_tool("write", trace, read_only=False),
        make_tool("read", trace, open_world=True),
    ]
    harness = make_harness(tools)
    await harness.call(harness.session(), 1, "run")
    (run_id,) = harness.journal.runs
    for key, call in harness.journal.calls.items():
        harness.journal.calls[key] = msgspec.structs.replace(call, state="interrupted", result=None)
    ran.clear()
    after = make_harness(tools, journal=harness.journal)
    result = await after.call(after.session(), 1, "run", arguments={"resume": run_id})
    assert result.structured == ["OUTCOME_UNKNOWN", "ok", "ok"]
    assert ran == ["read"]
    assert (f"{run_id}/inner", "write") in harness.journal.calls


async def test_an_unreadable_journal_stops_the_child(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """If the journal cannot be read, nothing runs again."""
    effects = EffectTools(make_tool, make_orchestration)
    harness = make_harness(effects.tools)
    first = (await harness.call(harness.session(), 1, "run")).structured

    async def unreadable(running: Any) -> None:
        raise ServiceUnavailableError("The disk refuses.", executed="no")

    harness.journal.earlier_child = unreadable
    repeat = await harness.call(harness.session(), 2, "run", arguments={"resume": first["id"]})
    assert repeat.structured["codes"] == ["SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE"]
    assert effects.done == ["one"]
