"""The nesting of orchestration calls and of agents, which are counted apart."""

from typing import Any

from toold.daemon.dispatch.nesting import MAX_PARTS, ROOT, Nesting, nesting_refusal

from .child_call_tools import calling, say


def test_agents_and_orchestration_calls_are_counted_apart(make_tool: Any) -> None:
    """An agent adds to the agents, its hidden tools to its parts, any other orchestration tool to the depth."""
    agent = make_tool("desk", say, orchestration=True, agent=True)
    tool = make_tool("pipeline", say, orchestration=True)
    inside = ROOT.below(tool, hidden=False).below(agent, hidden=False).below(tool, hidden=True).below(tool, hidden=True)
    assert inside == Nesting(1, ("desk",), 2)
    assert inside.below(tool, hidden=False) == Nesting(2, ("desk",), 2)
    assert inside.below(agent, hidden=False) == Nesting(1, ("desk", "desk"), 0)
    assert inside.below(make_tool("say", say), hidden=True) is inside
    assert ROOT.below(tool, hidden=True) == Nesting(1)


def test_each_nesting_has_its_limit() -> None:
    """The deepest allowed call is accepted, one more is refused."""
    limits = {"max_depth": 2, "max_agent_depth": 3}
    assert nesting_refusal(Nesting(2, ("a",) * 3, MAX_PARTS), **limits) is None
    for nesting, words in (
        (Nesting(3), "nested 2 deep"),
        (Nesting(0, ("a", "b", "a", "b")), "a → b → a → b"),
        (Nesting(0, ("a",), MAX_PARTS + 1), "parts of the agent a can be nested 32 deep"),
    ):
        refusal = nesting_refusal(nesting, **limits)
        assert refusal is not None
        assert words in refusal.message


async def test_an_agent_that_calls_itself_is_stopped(make_harness: Any, make_tool: Any) -> None:
    """Each agent has a hidden role between itself and the next one, and the error names all agents on the way."""

    async def run(_arguments: Any, context: Any) -> Any:
        async def role(_: Any, inner: Any) -> Any:
            return await calling("helper")(None, inner)

        hidden = make_tool("agent_role", role, read_only=False, orchestration=True)
        return (await context.call(hidden, {}, name="main")).structured

    agent = make_tool("helper", run, read_only=False, orchestration=True, agent=True)
    harness = make_harness([agent], max_depth=1, max_agent_depth=5)
    error = (await harness.call(harness.session(), 1, "helper")).structured["error"]
    assert error["code"] == "VALIDATION_ERROR"
    assert " → ".join(["helper"] * 6) in error["message"]
    assert len(harness.recorder.ended_calls) == 10


async def test_what_an_agent_calls_cannot_detach(make_harness: Any, make_tool: Any) -> None:
    """A detached call would begin again at depth 1 and outlive the agent's budget; an agent itself may be detached."""

    async def batch(_arguments: Any, context: Any) -> str:
        return str(await context.detach(changed={}, timeout_s=60))

    async def agent(arguments: Any, context: Any) -> Any:
        if arguments.get("detach"):
            return await context.detach(changed={"detach": False}, timeout_s=60)
        return (await context.call("batch", {}, name="b")).outcome

    tools = [
        make_tool("batch", batch, read_only=False, orchestration=True),
        make_tool("desk", agent, read_only=False, orchestration=True, agent=True),
    ]
    harness = make_harness(tools)
    session = harness.session()
    assert (await harness.call(session, 1, "desk")).text == "VALIDATION_ERROR"
    assert (await harness.call(session, 2, "desk", arguments={"detach": True})).ok
    await harness.answered()
