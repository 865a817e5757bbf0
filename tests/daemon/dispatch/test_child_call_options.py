"""The options of a child call: hidden tools, the journal for local tools, a narrower choice of tools, and streaming."""

import itertools
from typing import Any

import msgspec
from toold.tools import ToolCatalog, ToolRegistry, shipped_toolsets
from toold.tools.orchestration.tool_search import search_tools

from .child_call_tools import say
from .scripted_tools import hang

INNER = frozenset({"inner", "say", "search_tools"})


async def test_a_hidden_tool_takes_the_call_path_and_no_client_reaches_it(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """A tool object that is in no catalog is journalled, audited and shown below its parent, and is not found by
    name.
    """
    shown: list[Any] = []

    async def secret(arguments: Any, context: Any) -> str:
        shown.extend((call.id, call.parent.id, call.tool.name) for call in harness.router.calls if call.parent)
        return "done"

    hidden = make_tool("agent_turn", secret, read_only=False)

    async def run(_arguments: Any, context: Any) -> Any:
        done = await context.call(hidden, {}, name="t1")
        return [done.outcome, (await context.call("agent_turn", {}, name="t2")).outcome]

    harness = make_harness([make_orchestration(run)])
    session = harness.session()
    assert (await harness.call(session, 1, "compose")).structured == ["ok", "TOOL_NOT_FOUND"]
    assert harness.submit(session, 2, "agent_turn").error.code == "TOOL_NOT_FOUND"
    parent = harness.recorder.ended_calls[-1][0].id
    assert shown == [(f"{parent}/t1", parent, "agent_turn")]
    assert ("start", "t1") in harness.journal.events
    assert harness.recorder.ended_calls[0][0].id == f"{parent}/t1"


async def test_a_registered_tool_object_is_called_as_its_name(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """A tool object of the registry does not pass the toolset or ``within``."""
    plain = make_tool("say", say)

    async def inner(_arguments: Any, context: Any) -> str:
        return str((await context.call(plain, {}, name="s")).outcome)

    async def outer(_arguments: Any, context: Any) -> Any:
        result = await context.call("inner", {}, name="i", within=frozenset({"inner"}))
        return [result.text, (await context.call(plain, {}, name="s")).outcome]

    harness = make_harness([make_orchestration(inner, "inner"), make_orchestration(outer), plain])
    assert (await harness.call(harness.session(), 1, "compose")).structured == ["TOOL_NOT_FOUND", "ok"]


async def test_a_journalled_local_child_is_replayed(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """A resumed run gets the stored answer of a local tool, also of one that takes no permit, has failed, or is gone;
    without ``journal`` the tool runs again.
    """
    times = itertools.count(1)

    async def clock(arguments: Any, context: Any) -> int:
        return next(times)

    async def fail(arguments: Any, context: Any) -> int:
        if next(times) < 100:
            raise RuntimeError("no")
        return 0

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        kept = [
            await context.call(tool, {}, name=tool, journal=True) for tool in ("clock", "quick", "broken", "leaving")
        ]
        plain = await context.call("clock", {}, name="plain")
        results = [*kept, plain]
        return {"id": context.call_id, "values": [result.structured if result.ok else "-" for result in results]}

    tools = [
        make_orchestration(run, "run"),
        make_tool("clock", clock),
        make_tool("quick", clock, unmetered=True),
        make_tool("broken", fail),
    ]
    harness = make_harness([*tools, make_tool("leaving", clock)])
    session = harness.session()
    first = (await harness.call(session, 1, "run")).structured
    assert first["values"] == [1, 2, "-", 4, 5]
    harness.router.catalog = ToolCatalog(ToolRegistry(tools), shipped_toolsets(), "standard")
    again = (await harness.call(session, 2, "run", arguments={"resume": first["id"]})).structured
    assert again["values"] == [1, 2, "-", 4, 6]


async def test_a_journalled_child_without_its_result_is_an_error(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """An expired result is reported, because another answer would change the rest of the run; an interrupted read-only
    child runs again.
    """

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        return [(await context.call("say", {}, name=name, journal=True)).outcome for name in "ab"]

    harness = make_harness([make_orchestration(run, "run"), make_tool("say", say)])
    session = harness.session()
    await harness.call(session, 1, "run")
    (run_id,) = harness.journal.runs
    for name, state in (("a", "expired"), ("b", "interrupted")):
        stored = harness.journal.calls[run_id, name]
        harness.journal.calls[run_id, name] = msgspec.structs.replace(stored, state=state, result=None)
    again = await harness.call(session, 2, "run", arguments={"resume": run_id})
    assert again.structured == ["RESULT_EXPIRED", "ok"]


async def test_a_journalled_child_that_never_started_is_replayed(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """If a journalled child waited for a permit until its deadline, a resumed run gets that error again."""

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        result = await context.call("say", {}, name="a", journal=True, timeout_s=arguments.get("timeout_s", 5))
        return [result.outcome, result.metadata.replayed]

    harness = make_harness([make_orchestration(run, "run"), make_tool("say", say), make_tool("hang", hang)])
    session = harness.session(running=1)
    harness.submit(session, 1, "hang")
    await harness.until(lambda: session.permits.in_use)
    result = await harness.call(session, 2, "run", arguments={"timeout_s": 0.01})
    assert result.structured == ["TIMEOUT", None]
    harness.router.cancel(session, "n1")
    (run_id,) = harness.journal.runs
    again = await harness.call(session, 3, "run", arguments={"resume": run_id})
    assert again.structured == ["TIMEOUT", True]


async def test_within_narrows_a_child_and_its_descendants(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """Neither a child nor its children call, find or search other tools; a child that names more gets no more; and
    the parent keeps its tools.
    """
    found: dict[str, Any] = {}

    async def inner(arguments: Any, context: Any) -> Any:
        if arguments.get("deeper"):
            await context.call("inner", {}, name="i", within=INNER | {"other"})
            return None
        for tool in ("say", "other"):
            found[tool] = (await context.call(tool, {}, name=tool)).outcome
        found["view"] = list(context.toolset_view.tools)
        found["search"] = (await context.call("search_tools", {"query": "other tool of a test"}, name="s")).structured
        with_hint = (await context.call("sya", {}, name="typo")).error
        found["hint"] = (with_hint.details["suggestions"], "may call 3 tools" in with_hint.message)
        return None

    async def outer(_arguments: Any, context: Any) -> Any:
        await context.call("inner", {"deeper": True}, name="i", within=INNER)
        return (await context.call("other", {}, name="o")).outcome

    tools = [make_orchestration(inner, "inner"), make_orchestration(outer), search_tools]
    harness = make_harness([*tools, make_tool("say", say), make_tool("other", say)])
    assert (await harness.call(harness.session(), 1, "compose")).text == "ok"
    names = {row["name"] for row in found.pop("search")}
    assert names
    assert names <= INNER
    assert found == {
        "say": "ok",
        "other": "TOOL_NOT_FOUND",
        "view": ["inner", "say", "search_tools"],
        "hint": (["say"], True),
    }


async def test_a_call_with_limited_tools_cannot_detach(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """A detached call would have all tools of the session."""

    async def inner(_arguments: Any, context: Any) -> str:
        return str(await context.detach(changed={}, timeout_s=60))

    async def outer(_arguments: Any, context: Any) -> Any:
        result = await context.call("inner", {}, name="i", within=INNER)
        return [result.outcome, result.error.message]

    harness = make_harness([make_orchestration(inner, "inner"), make_orchestration(outer)])
    outcome, message = (await harness.call(harness.session(), 1, "compose")).structured
    assert (outcome, "without detach" in message) == ("VALIDATION_ERROR", True)


async def test_a_child_streams_through_its_parent(make_harness: Any, make_tool: Any, make_orchestration: Any) -> None:
    """A child whose parent takes its chunks may stream, and a replayed one streams nothing."""
    streaming: list[bool] = []

    async def talk(arguments: Any, context: Any) -> str:
        streaming.append(context.streaming)
        context.stream("a ")
        context.stream("b")
        return "a b"

    async def run(arguments: Any, context: Any) -> str:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        result = await context.call("talk", {}, name="t", journal=True, on_chunk=context.stream)
        return str(result.text)

    harness = make_harness([make_orchestration(run, "run"), make_tool("talk", talk)])
    session = harness.session(streaming=True)
    assert (await harness.call(session, 1, "run")).text == "a b"
    (run_id,) = harness.journal.runs
    assert (await harness.call(session, 2, "run", arguments={"resume": run_id})).text == "a b"
    assert (streaming, [text for _, text in harness.port.chunks]) == ([True], ["a ", "b"])


async def test_a_refused_journalled_child_stays_refused(
    make_harness: Any, make_tool: Any, make_orchestration: Any
) -> None:
    """Its parent acted on the refusal, so a resumed run gets it again, even if the tool exists by then."""
    ran: list[str] = []

    async def late(arguments: Any, context: Any) -> str:
        ran.append("late")
        return "ran"

    async def run(arguments: Any, context: Any) -> Any:
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        result = await context.call("late", {}, name="c", journal=True)
        return {"id": context.call_id, "outcome": result.outcome, "replayed": bool(result.metadata.replayed)}

    compose = make_orchestration(run, "run")
    before = make_harness([compose])
    first = (await before.call(before.session(), 1, "run")).structured
    after = make_harness([compose, make_tool("late", late, read_only=False)], journal=before.journal)
    again = (await after.call(after.session(), 2, "run", arguments={"resume": first["id"]})).structured
    assert (first["outcome"], again["outcome"], again["replayed"], ran) == (
        "TOOL_NOT_FOUND",
        "TOOL_NOT_FOUND",
        True,
        [],
    )
