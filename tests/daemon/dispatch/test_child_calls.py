"""Child calls: they pass all stages within their parent's time, and never deadlock."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from toold.daemon.dispatch.call_outcome import stored_result
from toold.daemon.dispatch.child_calls import earlier_result
from toold.protocol.error_codes import (
    OutcomeUnknownError,
    RequestIdConflictError,
    ResultExpiredError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from toold.protocol.session_calls import arguments_digest
from toold.protocol.tool_call import (
    LOCAL,
    Annotations,
    Metadata,
    Principal,
    TextContent,
    Timings,
    ToolResult,
    encode_result,
)
from toold.providers import CompletionRequest, OnDelta
from toold.store import StoredCall
from toold.tools import Arguments, Tool


async def say(arguments: Any, context: Any) -> Any:
    return {"said": arguments.get("text")}


async def hang(arguments: Any, context: Any) -> Any:
    await asyncio.Event().wait()


async def answer(request: CompletionRequest, on_delta: OnDelta | None) -> str:
    return "An answer."


def calling(tool: str, *, name: str = "step", timeout_s: float | None = None, **arguments: Any) -> Any:
    """A function that calls a tool once and returns its data or error."""

    async def function(_arguments: Any, context: Any) -> Any:
        result = await context.call(tool, arguments, name=name, timeout_s=timeout_s)
        return result.structured if result.error is None else {"error": msgspec.to_builtins(result.error)}

    return function


def raising(error: BaseException) -> Any:
    async def function(arguments: Any, context: Any) -> Any:
        raise error

    return function


@pytest.fixture
def compose(make: Any) -> Any:
    """Make an orchestration tool from a function."""

    def orchestration(function: Any, name: str = "compose") -> Tool:
        tool: Tool = make(name, function, read_only=False, open_world=True, orchestration=True)
        return tool

    return orchestration


# --- stages ---------------------------------------------------------------------------------------------------------


async def test_a_child_is_recorded_under_its_parents_id(make_harness: Any, make: Any, compose: Any) -> None:
    """A child has an id below its parent's, and its own record, which precedes its parent's."""
    harness = make_harness([compose(calling("say", text="hello")), make("say", say)])
    result = await harness.call(harness.session(), 1, "compose")
    assert result.structured == {"said": "hello"}
    (child, child_result, size), (parent, _, _) = harness.recorder.ended_calls
    assert (child.id, child.tool.name, child.request.request_id) == (f"{parent.id}/step", "say", "step")
    assert (child_result.structured, size) == ({"said": "hello"}, len('{"said":"hello"}'))


async def test_a_childs_error_is_a_result(make_harness: Any, make: Any, compose: Any) -> None:
    """An unknown tool, invalid arguments and a failing tool are results, each with its error and record."""

    class Typed(Arguments):
        """One argument."""

        text: str

    codes = []

    async def three(_arguments: Any, context: Any) -> str:
        for name, tool in (("a", "sya"), ("b", "typed"), ("c", "broken")):
            codes.append((await context.call(tool, {}, name=name)).error.code)
        return "done"

    typed = Tool("typed", "A tool.", Typed, say, Annotations(True, False, False, False))
    harness = make_harness([compose(three), typed, make("broken", raising(ValueError("oh")))])
    assert (await harness.call(harness.session(), 1, "compose")).ok
    assert codes == ["TOOL_NOT_FOUND", "VALIDATION_ERROR", "TOOL_EXECUTION_ERROR"]
    assert [call.request_id for call, _ in harness.recorder.refused_calls] == ["a", "b"]


async def test_the_toolset_limits_child_calls_too(make_harness: Any, make: Any, compose: Any) -> None:
    """A tool outside the session's toolset is not found by child calls either."""
    harness = make_harness([compose(calling("say"), "chat"), make("say", say)])
    error = (await harness.call(harness.session(toolset="lean"), 1, "chat")).structured["error"]
    assert (error["code"], error["details"]["toolsets"]) == ("TOOL_NOT_FOUND", ["standard", "full", "code", "hybrid"])
    session = harness.session(toolset="lean")
    session.usable = ("lean", "full")
    assert (await harness.call(session, 2, "chat")).structured["error"]["details"]["toolsets"] == ["full"]


async def test_a_writing_child_is_journalled_before_it_runs(make_harness: Any, make: Any, compose: Any) -> None:
    """Under its parent's run; a local child is not journalled."""
    both = ("write", "say")

    async def two(_arguments: Any, context: Any) -> None:
        for tool in both:
            await context.call(tool, {}, name=tool)

    harness = make_harness([compose(two), make("write", say, read_only=False), make("say", say)])
    await harness.call(harness.session(), 1, "compose")
    assert harness.journal.events == [("start", "n1"), ("start", "write"), ("end", "write"), ("end", "n1")]
    (parent,) = (running for running, _, _ in harness.recorder.ended_calls if running.parent is None)
    assert (parent.id, "write") in harness.journal.calls


async def test_a_large_result_reaches_its_parent_whole(make_harness: Any, make: Any, compose: Any) -> None:
    """A child's answer may exceed a frame; only the parent's answer has to fit."""

    async def flood(arguments: Any, context: Any) -> str:
        return "x" * 200_000

    async def measure(_arguments: Any, context: Any) -> int:
        return len((await context.call("flood", {}, name="step")).outputs[0].text)

    harness = make_harness([compose(measure), make("flood", flood)])
    assert (await harness.call(harness.session(), 1, "compose")).structured == 200_000


async def test_usage_of_children_is_added_to_their_parents(make_harness: Any, make: Any, compose: Any) -> None:
    """The answer has the total usage, cost and requests; each record has its own call's only."""

    async def two(_arguments: Any, context: Any) -> None:
        await asyncio.gather(*(context.call("ask", {}, name=name) for name in "ab"))

    nested = compose(calling("inner"), "outer")
    harness = make_harness([compose(two, "inner"), nested], {"kimi": (answer, 2)})
    metadata = (await harness.call(harness.session(), 1, "outer")).metadata
    assert metadata.provider_calls == 2
    assert (metadata.usage.input_tokens, metadata.usage.output_tokens, metadata.provider) == (6, 10, "kimi")
    own = {running.id.count("/"): running.meter.provider_calls for running, _, _ in harness.recorder.ended_calls}
    assert own == {2: 1, 1: 0, 0: 0}


async def test_progress_names_the_child(make_harness: Any, make: Any, compose: Any) -> None:
    """A child's progress reaches the client, prefixed by the names of the children on the way."""

    async def report(arguments: Any, context: Any) -> None:
        context.progress("half", 1, 2)
        context.stream("a piece")
        assert not context.streaming

    harness = make_harness([compose(calling("inner", name="b"), "outer"), compose(calling("report", name="a"), "inner"),
                  make("report", report)])  # fmt: skip
    await harness.call(harness.session(streaming=True), 1, "outer")
    ((request_id, progress),) = harness.port.heard
    assert (request_id, progress.message, progress.done, progress.total) == (1, "b: a: half", 1, 2)
    assert harness.port.chunks == []


@pytest.mark.parametrize("name", ["", "a/b", "x" * 81, "a b"])
async def test_a_child_has_a_unique_name(make_harness: Any, make: Any, compose: Any, name: str) -> None:
    """Ids contain names, so invalid and repeated ones are refused."""

    async def misnamed(_arguments: Any, context: Any) -> str:
        with pytest.raises(ValueError, match="cannot be a child's name"):
            await context.call("say", {}, name=name)
        await context.call("say", {}, name="once")
        with pytest.raises(ValueError, match="used before"):
            await context.call("say", {}, name="once")
        return "refused"

    harness = make_harness([compose(misnamed), make("say", say)])
    assert (await harness.call(harness.session(), 1, "compose")).ok


# --- its time, and its end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named_s", "tool_s", "parent_ms", "most_s"),
    [(5.0, None, 60_000, 5.0), (None, 7.0, 60_000, 7.0), (None, None, 60_000, 30.0), (50.0, 7.0, 3_000, 3.0)],
    ids=["named", "the tool's", "the daemon's", "what is left"],
)
async def test_a_childs_timeout_is_limited_by_its_parents(
    make_harness: Any,
    make: Any,
    compose: Any,
    named_s: float | None,
    tool_s: float | None,
    parent_ms: float,
    most_s: float,
) -> None:
    """The requested timeout or its tool's, but at most the time that its parent has left."""
    left = []

    async def look(arguments: Any, context: Any) -> None:
        left.append((context.remaining(), context.has_explicit_timeout))

    harness = make_harness([compose(calling("look", timeout_s=named_s)), make("look", look, timeout_s=tool_s)])
    await harness.call(harness.session(), 1, "compose", timeout_ms=parent_ms)
    ((remaining, named),) = left
    assert most_s - 2 < remaining <= most_s
    assert named == (named_s is not None)


async def test_a_childs_timeout_is_the_childs_error(make_harness: Any, make: Any, compose: Any) -> None:
    """A child that times out is TIMEOUT for its parent, which continues."""
    harness = make_harness([compose(calling("hang", timeout_s=0.02)), make("hang", hang)])
    result = await harness.call(harness.session(), 1, "compose")
    assert result.structured["error"]["code"] == "TIMEOUT"
    assert set(harness.counts().values()) == {0}


@pytest.mark.parametrize(
    ("how", "code"), [("caller", "CANCELLED"), ("deadline", "TIMEOUT"), ("disconnect", "CANCELLED"), ("fails", None)]
)
async def test_children_end_with_their_parent(
    make_harness: Any, make: Any, compose: Any, how: str, code: str | None
) -> None:
    """If the parent ends for any reason, its children are cancelled, and recorded before it."""

    async def several(_arguments: Any, context: Any) -> None:
        strays = [asyncio.create_task(context.call("hang", {}, name=f"stray{number}")) for number in range(3)]
        await asyncio.sleep(0)
        if how == "fails":
            await harness.until(lambda: session.permits.in_use == 3)
            raise ToolExecutionError("It failed.")
        await context.call("hang", {}, name="awaited")
        await asyncio.gather(*strays)

    harness = make_harness([compose(several), make("hang", hang)])
    session = harness.session()
    timeout_ms = 150 if how == "deadline" else None
    harness.submit(session, 1, "compose", timeout_ms=timeout_ms, on_disconnect="cancel")
    if how in {"caller", "disconnect"}:
        await harness.until(lambda: session.permits.in_use == 4)
        if how == "caller":
            harness.router.cancel(session, "n1")
        else:
            harness.router.disconnect(session, harness.port)
    await harness.answered()
    *children, (parent, result, _) = harness.recorder.ended_calls
    assert parent.parent is None
    assert {child_result.error.code for _, child_result, _ in children} == {code or "CANCELLED"}
    assert len(children) == (3 if how == "fails" else 4)
    assert result.error.code == (code or "TOOL_EXECUTION_ERROR")
    assert set(harness.counts().values()) == {0}


async def test_a_child_that_does_not_return_is_answered_for(make_harness: Any, make: Any, compose: Any) -> None:
    """A tool that swallows its cancellation delays its parent by the same second."""
    release = asyncio.Event()

    async def stuck(arguments: Any, context: Any) -> str:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        return "at last"

    harness = make_harness([compose(calling("stuck")), make("stuck", stuck)])
    session = harness.session()
    heartbeats = asyncio.create_task(harness.router.send_heartbeats())
    harness.submit(session, 1, "compose")
    await harness.until(lambda: session.permits.in_use)
    harness.router.cancel(session, "n1")
    await harness.answered()
    assert [result.error.code for _, result, _ in harness.recorder.ended_calls] == ["CANCELLED", "CANCELLED"]
    release.set()
    await harness.until(lambda: not session.permits.in_use)
    heartbeats.cancel()


async def test_a_cancelled_wait_ends_the_child(make_harness: Any, make: Any, compose: Any) -> None:
    """The tool continues once the child has ended, so nothing of it runs concurrently."""

    async def impatient(_arguments: Any, context: Any) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await context.call("hang", {}, name="first")
        assert session.permits.in_use == 0
        return str((await context.call("say", {"text": "on"}, name="second")).structured["said"])

    harness = make_harness([compose(impatient), make("hang", hang), make("say", say)])
    session = harness.session()
    result = await harness.call(session, 1, "compose")
    assert result.outputs == (TextContent("on"),)
    assert [one.outcome for _, one, _ in harness.recorder.ended_calls] == ["CANCELLED", "ok", "ok"]


async def test_the_operator_can_end_one_child(make_harness: Any, make: Any, compose: Any) -> None:
    """A child can be cancelled by its id; its parent gets its error."""
    harness = make_harness([compose(calling("hang")), make("hang", hang)])
    session = harness.session()
    harness.submit(session, 1, "compose")
    await harness.until(lambda: session.permits.in_use)
    parent, child = harness.router.calls
    assert harness.router.cancel_by_operator(child.id)
    await harness.answered()
    assert harness.port.answers[1].structured["error"]["message"] == "The call was cancelled by the operator."
    assert child.id == f"{parent.id}/step"


async def test_a_drain_lets_a_call_make_children(make_harness: Any, make: Any, compose: Any) -> None:
    """Running calls may finish within the grace period, and so may their children."""
    going_down = asyncio.Event()

    async def late(_arguments: Any, context: Any) -> Any:
        await going_down.wait()
        return (await context.call("say", {"text": "late"}, name="step")).structured

    harness = make_harness([compose(late), make("say", say)])
    harness.submit(harness.session(), 1, "compose")
    closing = asyncio.create_task(harness.router.close("The daemon is going down.", 5))
    await asyncio.sleep(0)
    going_down.set()
    await closing
    assert harness.port.answers[1].structured == {"said": "late"}


# --- bounds -----------------------------------------------------------------------------------------------------------


async def test_nested_calls_never_deadlock(make_harness: Any, make: Any, compose: Any) -> None:
    """Eight orchestration calls, nested four deep, end in a session with one permit, on a daemon with two: a call that
    waits for its children holds nothing that they need.
    """

    async def nest(arguments: Any, context: Any) -> Any:
        deeper = arguments.get("deeper")
        if not deeper:
            return (await context.call("say", {"text": "bottom"}, name="leaf")).structured
        both = (context.call("compose", {"deeper": deeper - 1}, name=f"n{number}") for number in range(2))
        return [result.structured for result in await asyncio.gather(*both)]

    harness = make_harness([compose(nest), make("say", say)], max_running=2)
    session = harness.session(running=1)
    for request_id in range(8):
        harness.submit(session, request_id, "compose", {"deeper": 3})
    await harness.answered()
    leaf = {"said": "bottom"}
    assert [result.structured for result in harness.port.answers.values()] == [[[[leaf] * 2] * 2] * 2] * 8
    assert set(harness.counts().values()) == {0}


async def test_orchestration_calls_per_session_are_limited(make_harness: Any, make: Any, compose: Any) -> None:
    """One more is refused at once and is retryable; other calls, and other sessions, are not affected."""
    harness = make_harness(
        [compose(calling("hang")), make("hang", hang), make("say", say)], max_orchestrations_per_session=2
    )
    session = harness.session(running=4)
    harness.submit(session, 1, "compose")
    harness.submit(session, 2, "compose")
    error = harness.submit(session, 3, "compose").error
    assert (error.code, error.retryable, error.retry_after_ms) == ("OVER_CAPACITY", True, 500)
    assert (await harness.call(session, 4, "say")).ok
    harness.submit(harness.session(), 5, "compose")
    harness.router.cancel(session, "n1")
    await harness.until(lambda: 1 in harness.port.answers)
    assert not isinstance(harness.submit(session, 6, "compose"), ToolResult)
    await harness.router.close("The test is over.", 0)


async def test_nesting_is_limited(make_harness: Any, make: Any, compose: Any) -> None:
    """An orchestration call beyond the depth is refused; a plain call at that depth is not."""

    async def dig(_arguments: Any, context: Any) -> Any:
        plain = await context.call("say", {}, name="say")
        deeper = await context.call("compose", {}, name="dig")
        assert plain.ok
        return deeper.structured if deeper.ok else {"why": deeper.error.message}

    harness = make_harness([compose(dig), make("say", say)], max_depth=4)
    result = await harness.call(harness.session(), 1, "compose")
    assert "nested 4 deep" in result.structured["why"]
    assert [running.id.count("/") for running, _, _ in harness.recorder.ended_calls] == [1, 2, 3, 4, 3, 2, 1, 0]


async def test_children_per_call_are_limited(make_harness: Any, make: Any, compose: Any) -> None:
    """Calls beyond the limit are refused, and not retryable."""

    async def many(_arguments: Any, context: Any) -> Any:
        results = [await context.call("say", {}, name=str(number)) for number in range(4)]
        return [result.error and result.error.retryable for result in results]

    harness = make_harness([compose(many), make("say", say)], max_children=3)
    assert (await harness.call(harness.session(), 1, "compose")).structured == [None, None, None, False]


async def test_children_count_neither_as_accepted_nor_as_waiting(make_harness: Any, make: Any, compose: Any) -> None:
    """Children use neither the session's nor the daemon's limit of accepted and waiting calls."""

    async def many(_arguments: Any, context: Any) -> None:
        await asyncio.gather(*(context.call("hang", {}, name=str(number)) for number in range(10)))

    harness = make_harness(
        [compose(many), make("hang", hang), make("say", say)], max_accepted_per_session=3, max_waiting=1
    )
    session = harness.session(running=2)
    harness.submit(session, 1, "compose")
    await harness.until(lambda: session.permits.in_use == 2 and session.permits.waiting == 8)
    assert (harness.router.accepted, harness.router.waiting) == (1, 0)
    assert not isinstance(harness.submit(session, 2, "say"), ToolResult)
    assert harness.router.waiting == 1
    assert harness.submit(session, 3, "say").error.code == "OVER_CAPACITY"
    await harness.router.close("The test is over.", 0)


# --- taking up an earlier run -----------------------------------------------------------------------------------------


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
def test_a_stored_write_is_replayed_or_refused(make: Any, known: StoredCall, expected: Any) -> None:
    """A finished one is replayed; one that may have taken effect does not run again."""
    tool = make("write", say, read_only=False)
    digest = arguments_digest({"a": 1})
    if expected == "replayed":
        result = earlier_result(known, stored_result(known), tool, digest)
        assert result is not None
        assert (result.outputs, result.metadata.replayed) == (DONE.outputs, True)
    else:
        with pytest.raises(expected):
            earlier_result(known, stored_result(known), tool, digest)


def test_a_failure_is_replayed_for_any_arguments(make: Any) -> None:
    """A failed call cannot be mistaken for another, and its arguments may have been corrected."""
    failed = ToolResult(Metadata(1.0, Timings()), error=ToolExecutionError("broken").to_tool_error())
    known = kept("done", encode_result(failed))
    result = earlier_result(known, failed, make("write", say, read_only=False), arguments_digest({"mended": True}))
    assert result is not None
    assert (result.error, result.metadata.replayed) == (failed.error, True)


@pytest.mark.parametrize("state", ["interrupted", "expired"])
@pytest.mark.parametrize("kind", [{"read_only": True}, {"read_only": False, "orchestration": True}], ids=str)
def test_repeatable_calls_run_again(make: Any, state: str, kind: dict[str, bool]) -> None:
    """Calls without a second effect, and orchestration calls, whose children are looked up themselves."""
    tool = make("write", say, open_world=True, **kind)
    assert earlier_result(kept(state), None, tool, arguments_digest({"a": 1})) is None


class EffectTools:
    """Tools that record their runs, and one that calls them; ``broken`` fails while a flag is set."""

    def __init__(self, make: Any, compose: Any) -> None:
        self.done: list[str] = []
        self.broken = True
        self.results: list[ToolResult] = []
        self.tools = [
            compose(self._run, "run"),
            compose(self._run, "other_run"),
            make("write", self._write, read_only=False),
            make("fail", self._fail, read_only=False),
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


async def test_a_resumed_run_repeats_nothing(make_harness: Any, make: Any, compose: Any) -> None:
    """A finished child is replayed from the earlier run, in any session of the same principal. A failed one can be
    retried under another name, and the next resume finds both.
    """
    effects = EffectTools(make, compose)
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


async def test_another_call_under_a_known_name_is_a_conflict(make_harness: Any, make: Any, compose: Any) -> None:
    """A changed step is neither replayed nor run."""
    effects = EffectTools(make, compose)
    harness = make_harness(effects.tools)
    first = (await harness.call(harness.session(), 1, "run")).structured
    again = await harness.call(harness.session(), 2, "run", arguments={"resume": first["id"], "text": "two"})
    assert again.structured["codes"][0] == "REQUEST_ID_CONFLICT"
    assert effects.done == ["one"]


@pytest.mark.parametrize("case", ["unknown", "another tool's", "another principal's"])
async def test_a_run_of_another_principal_is_not_found(make_harness: Any, make: Any, compose: Any, case: str) -> None:
    """Only a run of the same tool and principal can be resumed, and an unknown run is an error."""
    effects = EffectTools(make, compose)
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


async def test_an_active_run_cannot_be_resumed(make_harness: Any, make: Any, compose: Any) -> None:
    """Two calls would do the same work concurrently."""

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        return (await context.call("hang", {}, name="step")).outcome

    harness = make_harness([compose(run, "run"), make("hang", hang)])
    session = harness.session()
    first = harness.submit(session, 1, "run")
    await harness.until(lambda: session.permits.in_use)
    error = (await harness.call(session, 2, "run", arguments={"resume": first.id})).error
    assert (error.code, first.id in error.message) == ("REQUEST_ID_CONFLICT", True)
    await harness.router.close("The test is over.", 0)


async def test_interrupted_children_are_unknown_or_run_again(make_harness: Any, make: Any, compose: Any) -> None:
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

    tools = [compose(run, "run"), compose(run, "inner"), make("write", trace, read_only=False),
             make("read", trace, open_world=True)]  # fmt: skip
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


async def test_an_unreadable_journal_stops_the_child(make_harness: Any, make: Any, compose: Any) -> None:
    """If the journal cannot be read, nothing runs again."""
    effects = EffectTools(make, compose)
    harness = make_harness(effects.tools)
    first = (await harness.call(harness.session(), 1, "run")).structured

    async def unreadable(running: Any) -> None:
        raise ServiceUnavailableError("The disk refuses.", executed="no")

    harness.journal.earlier_child = unreadable
    again = await harness.call(harness.session(), 2, "run", arguments={"resume": first["id"]})
    assert again.structured["codes"] == ["SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE"]
    assert effects.done == ["one"]
