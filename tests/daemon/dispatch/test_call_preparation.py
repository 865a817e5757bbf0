"""What precedes admission: the tool is resolved, and a repeated request id attaches, replays or conflicts."""

from typing import Any

from toold.protocol.tool_call import ToolResult
from toold.tools import ToolCatalog, ToolRegistry, shipped_toolsets

from .scripted_tools import hang, raising, say


async def test_an_unknown_tool_is_refused_with_a_suggestion(make_harness: Any, make_tool: Any) -> None:
    """Nothing was accepted, nothing executed."""
    harness = make_harness([make_tool("codereview", say)])
    refusal = harness.submit(harness.session(), 1, "codereveiw")
    assert isinstance(refusal, ToolResult)
    assert refusal.error is not None
    assert (refusal.error.code, refusal.error.executed) == ("TOOL_NOT_FOUND", "no")
    assert "codereview" in refusal.error.message


async def test_a_toolset_limits_calls(make_harness: Any, make_tool: Any) -> None:
    """A tool outside the toolset is not found, and the error names the toolsets that contain it."""
    harness = make_harness([make_tool("chat", say), make_tool("other", say)])
    session = harness.session(toolset="lean")
    assert (await harness.call(session, 1, "chat", arguments={"text": "a"})).ok
    refusal = harness.submit(session, 2, "other")
    assert refusal.error.code == "TOOL_NOT_FOUND"
    assert (
        "not in the toolset 'lean' of this session; connect with a toolset that has it: standard, full, code, hybrid."
        in (refusal.error.message)
    )
    assert (await harness.call(harness.session(), 2, "other")).ok


async def test_an_accepted_call_is_answered_even_if_its_tool_is_gone(make_harness: Any, make_tool: Any) -> None:
    """Its id attaches while it runs and is replayed afterwards; a new call of the tool is not found."""
    harness = make_harness([make_tool("say", say), make_tool("hang", hang, read_only=False)])
    session = harness.session()
    done = await harness.call(session, 1, "say", arguments={"text": "a"})
    running = harness.submit(session, 2, "hang")
    await harness.until(lambda: running.entered)
    harness.router.catalog = ToolCatalog(ToolRegistry([]), shipped_toolsets(), "standard")
    assert harness.submit(session, 1, "say", {"text": "a"}).outputs == done.outputs
    assert harness.submit(session, 1, "say", {"text": "b"}).error.code == "REQUEST_ID_CONFLICT"
    assert harness.submit(session, 2, "hang") is None
    assert harness.submit(session, 3, "say", {"text": "a"}).error.code == "TOOL_NOT_FOUND"
    harness.router.cancel(session, running.key)
    await harness.answered()


async def test_the_same_id_attaches_or_conflicts(make_harness: Any, make_tool: Any) -> None:
    """A repeat of a running call gets no second answer; other content under its id is refused."""
    harness = make_harness([make_tool("hang", hang), make_tool("say", say)])
    session = harness.session()
    running = harness.submit(session, 1, "hang", {"a": 1})
    assert harness.submit(session, 1, "hang", {"a": 1}) is None
    conflict = harness.submit(session, 1, "hang", {"a": 2})
    assert conflict.error.code == "REQUEST_ID_CONFLICT"
    assert (await harness.call(session, "1", "say")).ok  # the string is a different id
    harness.router.cancel(session, running.key)
    await harness.answered()


async def test_a_finished_calls_id_replays_its_result(make_harness: Any, make_tool: Any) -> None:
    """The tool runs once; a repeat gets the same outputs, marked as replayed; other content is refused."""
    runs: list[int] = []

    async def count(arguments: Any, context: Any) -> Any:
        runs.append(1)
        return {"run": len(runs)}

    harness = make_harness([make_tool("count", count, read_only=False)])
    session = harness.session()
    first = await harness.call(session, 1, "count", arguments={"a": 1})
    repeat = harness.submit(session, 1, "count", {"a": 1})
    assert isinstance(repeat, ToolResult)
    assert (repeat.outputs, repeat.structured, repeat.metadata.replayed) == (first.outputs, {"run": 1}, True)
    assert first.metadata.replayed is None
    assert harness.submit(session, 1, "count", {"a": 2}).error.code == "REQUEST_ID_CONFLICT"
    assert runs == [1]
    assert len(harness.recorder.ended_calls) == 1


async def test_a_call_with_an_expired_result_does_not_run_again(make_harness: Any, make_tool: Any) -> None:
    """A write is never repeated because its answer was deleted; a local call may be."""
    harness = make_harness([make_tool("write", say, read_only=False), make_tool("say", say)], max_cached_result_bytes=1)
    session = harness.session()
    for request_id, name in ((1, "write"), (2, "say")):
        await harness.call(session, request_id, name)
    expired = harness.submit(session, 1, "write")
    assert (expired.error.code, expired.error.executed, expired.error.retryable) == ("RESULT_EXPIRED", "yes", False)
    assert (harness.router.status_of(session, 1), harness.router.status_of(session, 2)) == ("expired", "unknown")
    del harness.port.answers[2]
    assert (await harness.call(session, 2, "say")).ok


async def test_failed_calls_are_replayed_as_failed(make_harness: Any, make_tool: Any) -> None:
    """An error is an answer: the same id gets it again."""
    harness = make_harness([make_tool("bad", raising(ValueError("x")))])
    session = harness.session()
    await harness.call(session, 1, "bad")
    repeat = harness.submit(session, 1, "bad")
    assert (repeat.error.code, repeat.metadata.replayed) == ("TOOL_EXECUTION_ERROR", True)


async def test_two_sessions_with_the_same_request_id_get_their_own_results(make_harness: Any, make_tool: Any) -> None:
    """An id is scoped to its session."""
    harness = make_harness([make_tool("say", say)])
    ports = [type(harness.port)() for _ in range(2)]
    for port, label in zip(ports, ("one", "two"), strict=True):
        harness.submit(harness.session(label), "same", "say", {"text": label}, port=port)
    await harness.answered()
    assert [port.answers["same"].outputs[0].text for port in ports] == ["one", "two"]


async def test_a_closing_daemon_still_replays(make_harness: Any, make_tool: Any) -> None:
    """Only new calls are refused: a repeat gets its stored result."""
    harness = make_harness([make_tool("say", say)])
    session = harness.session()
    await harness.call(session, 1, "say")
    await harness.router.close("The daemon stops.", 0)
    replay = harness.submit(session, 1, "say")
    assert (replay.ok, replay.metadata.replayed) == (True, True)
    assert harness.submit(session, 2, "say").error.code == "SERVICE_UNAVAILABLE"
    assert harness.router.status_of(session, 2) == "unknown"
