"""Calls that calls make: they go the road of every call, within their parent's time, and hold nothing up."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest
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
    """What calls a tool once, and returns its data, or its error."""

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


# --- the road ---------------------------------------------------------------------------------------------------------


async def test_a_child_is_recorded_under_its_parents_id(house: Any, make: Any, compose: Any) -> None:
    """A child has an id below its parent's, and a record of its own, which comes before its parent's."""
    home = house([compose(calling("say", text="hello")), make("say", say)])
    result = await home.call(home.session(), 1, "compose")
    assert result.structured == {"said": "hello"}
    (child, child_result, size), (parent, _, _) = home.recorder.ended_calls
    assert (child.id, child.tool.name, child.request.request_id) == (f"{parent.id}/step", "say", "step")
    assert (child_result.structured, size) == ({"said": "hello"}, len(encode_result(child_result)))


async def test_what_a_child_did_is_no_exception(house: Any, make: Any, compose: Any) -> None:
    """An unknown tool, wrong arguments and a tool that fails are results, each with its error and its record."""

    class Typed(Arguments):
        """One argument."""

        text: str

    codes = []

    async def three(_arguments: Any, context: Any) -> str:
        for name, tool in (("a", "sya"), ("b", "typed"), ("c", "broken")):
            codes.append((await context.call(tool, {}, name=name)).error.code)
        return "done"

    typed = Tool("typed", "A tool.", Typed, say, Annotations(True, False, False, False))
    home = house([compose(three), typed, make("broken", raising(ValueError("oh")))])
    assert (await home.call(home.session(), 1, "compose")).ok
    assert codes == ["TOOL_NOT_FOUND", "VALIDATION_ERROR", "TOOL_EXECUTION_ERROR"]
    assert [call.request_id for call, _ in home.recorder.refused_calls] == ["a", "b"]


async def test_the_toolset_bounds_what_is_called_too(house: Any, make: Any, compose: Any) -> None:
    """A tool that the session's toolset leaves out is not found by its calls either."""
    home = house([compose(calling("say"), "chat"), make("say", say)])
    error = (await home.call(home.session(toolset="lean"), 1, "chat")).structured["error"]
    assert (error["code"], error["details"]["toolsets"]) == ("TOOL_NOT_FOUND", ["standard", "full", "code", "hybrid"])
    session = home.session(toolset="lean")
    session.usable = ("lean", "full")
    assert (await home.call(session, 2, "chat")).structured["error"]["details"]["toolsets"] == ["full"]


async def test_what_may_write_is_in_the_journal_before_it_runs(house: Any, make: Any, compose: Any) -> None:
    """A child that is not local is written down under its parent's run; a local one touches no disk."""
    both = ("write", "say")

    async def two(_arguments: Any, context: Any) -> None:
        for tool in both:
            await context.call(tool, {}, name=tool)

    home = house([compose(two), make("write", say, read_only=False), make("say", say)])
    await home.call(home.session(), 1, "compose")
    assert home.journal.events == [("start", "n1"), ("start", "write"), ("end", "write"), ("end", "n1")]
    (parent,) = (running for running, _, _ in home.recorder.ended_calls if running.parent is None)
    assert (parent.id, "write") in home.journal.calls


async def test_a_large_result_reaches_its_parent_whole(house: Any, make: Any, compose: Any) -> None:
    """What does not fit into a frame is no error where no frame is: only the parent's own answer has to fit."""

    async def flood(arguments: Any, context: Any) -> str:
        return "x" * 200_000

    async def measure(_arguments: Any, context: Any) -> int:
        return len((await context.call("flood", {}, name="step")).outputs[0].text)

    home = house([compose(measure), make("flood", flood)])
    assert (await home.call(home.session(), 1, "compose")).structured == 200_000


async def test_what_children_used_is_their_parents_too(house: Any, make: Any, compose: Any) -> None:
    """Usage, cost and requests of children sum up in the answer, and are recorded with each child alone."""

    async def two(_arguments: Any, context: Any) -> None:
        await asyncio.gather(*(context.call("ask", {}, name=name) for name in "ab"))

    nested = compose(calling("inner"), "outer")
    home = house([compose(two, "inner"), nested], {"kimi": (answer, 2)})
    metadata = (await home.call(home.session(), 1, "outer")).metadata
    assert metadata.provider_calls == 2
    assert (metadata.usage.input_tokens, metadata.usage.output_tokens, metadata.provider) == (6, 10, "kimi")
    own = {running.id.count("/"): running.meter.provider_calls for running, _, _ in home.recorder.ended_calls}
    assert own == {2: 1, 1: 0, 0: 0}


async def test_progress_names_the_child(house: Any, make: Any, compose: Any) -> None:
    """What a child reports reaches the caller of the outermost call, behind the names of the children it came by."""

    async def report(arguments: Any, context: Any) -> None:
        context.progress("half", 1, 2)
        context.stream("a piece")
        assert not context.streaming

    home = house([compose(calling("inner", name="b"), "outer"), compose(calling("report", name="a"), "inner"),
                  make("report", report)])  # fmt: skip
    await home.call(home.session(streaming=True), 1, "outer")
    ((request_id, progress),) = home.port.heard
    assert (request_id, progress.message, progress.done, progress.total) == (1, "b: a: half", 1, 2)
    assert home.port.chunks == []


@pytest.mark.parametrize("name", ["", "a/b", "x" * 81, "a b"])
async def test_a_child_has_a_name_of_its_own(house: Any, make: Any, compose: Any, name: str) -> None:
    """Ids are built of names, so what is none is refused, and so is one that was given before."""

    async def misnamed(_arguments: Any, context: Any) -> str:
        with pytest.raises(ValueError, match="cannot be a child's name"):
            await context.call("say", {}, name=name)
        await context.call("say", {}, name="once")
        with pytest.raises(ValueError, match="used before"):
            await context.call("say", {}, name="once")
        return "refused"

    home = house([compose(misnamed), make("say", say)])
    assert (await home.call(home.session(), 1, "compose")).ok


# --- its time, and its end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named_s", "tool_s", "parent_ms", "most_s"),
    [(5.0, None, 60_000, 5.0), (None, 7.0, 60_000, 7.0), (None, None, 60_000, 30.0), (50.0, 7.0, 3_000, 3.0)],
    ids=["named", "the tool's", "the daemon's", "what is left"],
)
async def test_a_child_has_its_time_within_its_parents(
    house: Any, make: Any, compose: Any, named_s: float | None, tool_s: float | None, parent_ms: float, most_s: float
) -> None:
    """It is the time that was named, or its tool's, and never more than its parent has left."""
    left = []

    async def look(arguments: Any, context: Any) -> None:
        left.append((context.remaining(), context.has_explicit_timeout))

    home = house([compose(calling("look", timeout_s=named_s)), make("look", look, timeout_s=tool_s)])
    await home.call(home.session(), 1, "compose", timeout_ms=parent_ms)
    ((remaining, named),) = left
    assert most_s - 2 < remaining <= most_s
    assert named == (named_s is not None)


async def test_a_childs_own_deadline_is_its_own_error(house: Any, make: Any, compose: Any) -> None:
    """A child that runs out of its time is TIMEOUT for its parent, which goes on."""
    home = house([compose(calling("hang", timeout_s=0.02)), make("hang", hang)])
    result = await home.call(home.session(), 1, "compose")
    assert result.structured["error"]["code"] == "TIMEOUT"
    assert set(home.counts().values()) == {0}


@pytest.mark.parametrize(
    ("how", "code"), [("caller", "CANCELLED"), ("deadline", "TIMEOUT"), ("disconnect", "CANCELLED"), ("fails", None)]
)
async def test_children_end_with_their_parent(house: Any, make: Any, compose: Any, how: str, code: str | None) -> None:
    """For whatever cause the parent ends, its children are cancelled, and have ended and are recorded before it."""

    async def several(_arguments: Any, context: Any) -> None:
        strays = [asyncio.create_task(context.call("hang", {}, name=f"stray{number}")) for number in range(3)]
        await asyncio.sleep(0)
        if how == "fails":
            await home.until(lambda: session.permits.in_use == 3)
            raise ToolExecutionError("It failed.")
        await context.call("hang", {}, name="awaited")
        await asyncio.gather(*strays)

    home = house([compose(several), make("hang", hang)])
    session = home.session()
    timeout_ms = 150 if how == "deadline" else None
    home.submit(session, 1, "compose", timeout_ms=timeout_ms, on_disconnect="cancel")
    if how in {"caller", "disconnect"}:
        await home.until(lambda: session.permits.in_use == 4)
        if how == "caller":
            home.router.cancel(session, "n1")
        else:
            home.router.disconnect(session, home.port)
    await home.answered()
    *children, (parent, result, _) = home.recorder.ended_calls
    assert parent.parent is None
    assert {child_result.error.code for _, child_result, _ in children} == {code or "CANCELLED"}
    assert len(children) == (3 if how == "fails" else 4)
    assert result.error.code == (code or "TOOL_EXECUTION_ERROR")
    assert set(home.counts().values()) == {0}


async def test_a_child_that_does_not_end_is_answered_for(house: Any, make: Any, compose: Any) -> None:
    """A tool that swallows its cancellation holds its parent's end up for the same second as its own."""
    let_go = asyncio.Event()

    async def stuck(arguments: Any, context: Any) -> str:
        while not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await let_go.wait()
        return "at last"

    home = house([compose(calling("stuck")), make("stuck", stuck)])
    session = home.session()
    beat = asyncio.create_task(home.router.send_heartbeats())
    home.submit(session, 1, "compose")
    await home.until(lambda: session.permits.in_use)
    home.router.cancel(session, "n1")
    await home.answered()
    assert [result.error.code for _, result, _ in home.recorder.ended_calls] == ["CANCELLED", "CANCELLED"]
    let_go.set()
    await home.until(lambda: not session.permits.in_use)
    beat.cancel()


async def test_a_wait_that_the_tool_gives_up_ends_the_child(house: Any, make: Any, compose: Any) -> None:
    """Who stops waiting for a child goes on once that has ended, so that nothing of it runs beside what comes next."""

    async def impatient(_arguments: Any, context: Any) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await context.call("hang", {}, name="first")
        assert session.permits.in_use == 0
        return str((await context.call("say", {"text": "on"}, name="second")).structured["said"])

    home = house([compose(impatient), make("hang", hang), make("say", say)])
    session = home.session()
    result = await home.call(session, 1, "compose")
    assert result.outputs == (TextContent("on"),)
    assert [one.outcome for _, one, _ in home.recorder.ended_calls] == ["CANCELLED", "ok", "ok"]


async def test_the_operator_can_end_one_child(house: Any, make: Any, compose: Any) -> None:
    """A child has an id that can be cancelled by itself; its parent gets its error."""
    home = house([compose(calling("hang")), make("hang", hang)])
    session = home.session()
    home.submit(session, 1, "compose")
    await home.until(lambda: session.permits.in_use)
    parent, child = home.router.calls
    assert home.router.cancel_by_operator(child.id)
    await home.answered()
    assert home.port.answers[1].structured["error"]["message"] == "The call was cancelled by the operator."
    assert child.id == f"{parent.id}/step"


async def test_a_drain_lets_a_call_go_on_with_its_calls(house: Any, make: Any, compose: Any) -> None:
    """What runs may finish within the grace period, and what it calls belongs to it."""
    going_down = asyncio.Event()

    async def late(_arguments: Any, context: Any) -> Any:
        await going_down.wait()
        return (await context.call("say", {"text": "late"}, name="step")).structured

    home = house([compose(late), make("say", say)])
    home.submit(home.session(), 1, "compose")
    closing = asyncio.create_task(home.router.close("The daemon is going down.", 5))
    await asyncio.sleep(0)
    going_down.set()
    await closing
    assert home.port.answers[1].structured == {"said": "late"}


# --- bounds -----------------------------------------------------------------------------------------------------------


async def test_nested_calls_never_wait_for_themselves(house: Any, make: Any, compose: Any) -> None:
    """Eight orchestration calls, nested four deep, end in a session with one permit, on a daemon with two: a call that
    waits for its children holds nothing that they need.
    """

    async def nest(arguments: Any, context: Any) -> Any:
        deeper = arguments.get("deeper")
        if not deeper:
            return (await context.call("say", {"text": "bottom"}, name="leaf")).structured
        both = (context.call("compose", {"deeper": deeper - 1}, name=f"n{number}") for number in range(2))
        return [result.structured for result in await asyncio.gather(*both)]

    home = house([compose(nest), make("say", say)], max_running=2)
    session = home.session(running=1)
    for request_id in range(8):
        home.submit(session, request_id, "compose", {"deeper": 3})
    await home.answered()
    leaf = {"said": "bottom"}
    assert [result.structured for result in home.port.answers.values()] == [[[[leaf] * 2] * 2] * 2] * 8
    assert set(home.counts().values()) == {0}


async def test_orchestration_calls_per_session_are_limited(house: Any, make: Any, compose: Any) -> None:
    """One more is turned away at once and may come again; other calls, and other sessions' ones, are not."""
    home = house([compose(calling("hang")), make("hang", hang), make("say", say)], max_orchestrations_per_session=2)
    session = home.session(running=4)
    home.submit(session, 1, "compose")
    home.submit(session, 2, "compose")
    error = home.submit(session, 3, "compose").error
    assert (error.code, error.retryable, error.retry_after_ms) == ("OVER_CAPACITY", True, 500)
    assert (await home.call(session, 4, "say")).ok
    home.submit(home.session(), 5, "compose")
    home.router.cancel(session, "n1")
    await home.until(lambda: 1 in home.port.answers)
    assert not isinstance(home.submit(session, 6, "compose"), ToolResult)
    await home.router.close("The test is over.", 0)


async def test_nesting_has_a_bottom(house: Any, make: Any, compose: Any) -> None:
    """An orchestration call that would be one too deep is refused; a plain one there is not."""

    async def dig(_arguments: Any, context: Any) -> Any:
        plain = await context.call("say", {}, name="say")
        deeper = await context.call("compose", {}, name="dig")
        assert plain.ok
        return deeper.structured if deeper.ok else {"why": deeper.error.message}

    home = house([compose(dig), make("say", say)], max_depth=4)
    result = await home.call(home.session(), 1, "compose")
    assert "nested 4 deep" in result.structured["why"]
    assert [running.id.count("/") for running, _, _ in home.recorder.ended_calls] == [1, 2, 3, 4, 3, 2, 1, 0]


async def test_a_call_makes_so_many_calls(house: Any, make: Any, compose: Any) -> None:
    """Past its bound a call's calls are refused, and trying again is no use."""

    async def many(_arguments: Any, context: Any) -> Any:
        results = [await context.call("say", {}, name=str(number)) for number in range(4)]
        return [result.error and result.error.retryable for result in results]

    home = house([compose(many), make("say", say)], max_children=3)
    assert (await home.call(home.session(), 1, "compose")).structured == [None, None, None, False]


async def test_children_count_neither_as_accepted_nor_as_waiting(house: Any, make: Any, compose: Any) -> None:
    """A call's children take none of its session's places, and none of those of calls that wait for a permit."""

    async def many(_arguments: Any, context: Any) -> None:
        await asyncio.gather(*(context.call("hang", {}, name=str(number)) for number in range(10)))

    home = house([compose(many), make("hang", hang), make("say", say)], max_accepted_per_session=3, max_waiting=1)
    session = home.session(running=2)
    home.submit(session, 1, "compose")
    await home.until(lambda: session.permits.in_use == 2 and session.permits.waiting == 8)
    assert (home.router.accepted, home.router.waiting) == (1, 0)
    assert not isinstance(home.submit(session, 2, "say"), ToolResult)
    assert home.router.waiting == 1
    assert home.submit(session, 3, "say").error.code == "OVER_CAPACITY"
    await home.router.close("The test is over.", 0)


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
def test_what_is_known_of_a_write_decides(make: Any, known: StoredCall, expected: Any) -> None:
    """What has ended is answered from there; what may have had its effect is not run again."""
    tool = make("write", say, read_only=False)
    digest = arguments_digest({"a": 1})
    if expected == "replayed":
        result = earlier_result(known, tool, digest)
        assert result is not None
        assert (result.outputs, result.metadata.replayed) == (DONE.outputs, True)
    else:
        with pytest.raises(expected):
            earlier_result(known, tool, digest)


def test_a_failure_is_told_whatever_its_arguments_were(make: Any) -> None:
    """There is nothing of it that other arguments could be mixed up with, and they may be the mended ones."""
    failed = ToolResult(Metadata(1.0, Timings()), error=ToolExecutionError("broken").to_tool_error())
    known = msgspec.structs.replace(kept("done"), result=encode_result(failed))
    result = earlier_result(known, make("write", say, read_only=False), arguments_digest({"mended": True}))
    assert result is not None
    assert (result.error, result.metadata.replayed) == (failed.error, True)


@pytest.mark.parametrize("state", ["interrupted", "expired"])
@pytest.mark.parametrize("kind", [{"read_only": True}, {"read_only": False, "orchestration": True}], ids=str)
def test_what_may_run_twice_does_so(make: Any, state: str, kind: dict[str, bool]) -> None:
    """A call without a second effect runs again, and so does one whose own calls are looked up in their turn."""
    tool = make("write", say, open_world=True, **kind)
    assert earlier_result(kept(state), tool, arguments_digest({"a": 1})) is None


class Deeds:
    """Tools that leave a trace, and one that calls them; ``broken`` fails as long as it is told to."""

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


async def test_a_run_that_is_taken_up_does_nothing_twice(house: Any, make: Any, compose: Any) -> None:
    """A child that has ended is answered from the run before, in any session of the same principal; one that failed may
    be tried anew under another name, and the one after that finds both.
    """
    deeds = Deeds(make, compose)
    home = house(deeds.tools)
    first = (await home.call(home.session("one"), 1, "run")).structured
    assert first["codes"] == ["ok", "TOOL_EXECUTION_ERROR"]
    deeds.broken = False
    second = (await home.call(home.session("two"), 2, "run", arguments={"resume": first["id"]})).structured
    assert second["codes"] == ["ok", "ok"]
    third = (await home.call(home.session("two"), 3, "run", arguments={"resume": second["id"]})).structured
    assert third["codes"] == ["ok", "ok"]
    assert deeds.done == ["one"]
    assert [result.metadata.replayed for result in deeds.results[2:]] == [True, None, True, True]
    assert [running.id for running, _, _ in home.recorder.ended_calls if running.tool.name == "fail"] == [
        f"{first['id']}/second", f"{second['id']}/second#2",
    ]  # fmt: skip


async def test_another_call_under_a_known_name_is_a_conflict(house: Any, make: Any, compose: Any) -> None:
    """A step that was changed since is not answered with what another did, nor run."""
    deeds = Deeds(make, compose)
    home = house(deeds.tools)
    first = (await home.call(home.session(), 1, "run")).structured
    again = await home.call(home.session(), 2, "run", arguments={"resume": first["id"], "text": "two"})
    assert again.structured["codes"][0] == "REQUEST_ID_CONFLICT"
    assert deeds.done == ["one"]


@pytest.mark.parametrize("case", ["unknown", "another tool's", "another principal's"])
async def test_a_run_that_is_not_theirs_is_not_found(house: Any, make: Any, compose: Any, case: str) -> None:
    """Only a run of the same tool and principal can be taken up, and no run is not the same as an empty one."""
    deeds = Deeds(make, compose)
    home = house(deeds.tools)
    session = home.session()
    first = (await home.call(session, 1, "run")).structured
    resume = "nothing-1" if case == "unknown" else first["id"]
    if case == "another principal's":
        assert session.principal == LOCAL
        session.principal = Principal("somebody")
    tool = "other_run" if case == "another tool's" else "run"
    result = await home.call(session, 2, tool, arguments={"resume": resume})
    assert (result.error.code, deeds.done) == ("NOT_FOUND", ["one"])


async def test_a_run_that_goes_on_is_not_taken_up(house: Any, make: Any, compose: Any) -> None:
    """Two calls at the same run would do the same things at once."""

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        return (await context.call("hang", {}, name="step")).outcome

    home = house([compose(run, "run"), make("hang", hang)])
    session = home.session()
    first = home.submit(session, 1, "run")
    await home.until(lambda: session.permits.in_use)
    error = (await home.call(session, 2, "run", arguments={"resume": first.id})).error
    assert (error.code, first.id in error.message) == ("REQUEST_ID_CONFLICT", True)
    await home.router.close("The test is over.", 0)


async def test_what_a_crash_cut_off_is_unknown_or_runs_again(house: Any, make: Any, compose: Any) -> None:
    """After a crash a write that had begun is unknown, and what may run twice does; nested calls are taken up too."""
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
    home = house(tools)
    await home.call(home.session(), 1, "run")
    (run_id,) = home.journal.runs
    for key, call in home.journal.calls.items():
        home.journal.calls[key] = msgspec.structs.replace(call, state="interrupted", result=None)
    ran.clear()
    after = house(tools, journal=home.journal)
    result = await after.call(after.session(), 1, "run", arguments={"resume": run_id})
    assert result.structured == ["OUTCOME_UNKNOWN", "ok", "ok"]
    assert ran == ["read"]
    assert (f"{run_id}/inner", "write") in home.journal.calls


async def test_a_disk_that_does_not_say_stops_the_call(house: Any, make: Any, compose: Any) -> None:
    """Where the journal cannot be asked what was done, nothing is done again."""
    deeds = Deeds(make, compose)
    home = house(deeds.tools)
    first = (await home.call(home.session(), 1, "run")).structured

    async def unreadable(running: Any) -> None:
        raise ServiceUnavailableError("The disk refuses.", executed="no")

    home.journal.earlier_child = unreadable
    again = await home.call(home.session(), 2, "run", arguments={"resume": first["id"]})
    assert again.structured["codes"] == ["SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE"]
    assert deeds.done == ["one"]
