"""What clients are told of the tools when they connect."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from toold.tools import (
    Arguments,
    Tool,
    ToolCatalog,
    ToolContext,
    ToolRegistry,
    Toolset,
    instructions,
    load_registry,
    shipped_toolsets,
    tool,
)
from toold.tools.client_instructions import MAX_BYTES


def make(name: str) -> Tool:
    async def do(arguments: Arguments, context: ToolContext) -> None:
        """Do it."""

    return tool(name, read_only=True, open_world=False)(do)


def told(*tools: Tool, toolset: str = "full", simulated: bool = False) -> str:
    return instructions(ToolCatalog(ToolRegistry(tools), shipped_toolsets(), "full").view(toolset), simulated=simulated)


def test_the_tools_of_the_toolset_are_named_and_no_others() -> None:
    """A client is told no more than it can call."""
    text = told(*load_registry().tools, toolset="lean")
    assert "toolset 'lean': 00_INIT, analyze, chat, " in text
    assert "challenge" not in text


def test_the_whole_standard_listing_fits() -> None:
    """All names of the daemon's own tools are there."""
    text = told(*load_registry().tools, toolset="standard")
    assert all(tool.name in text for tool in load_registry().tools)


def test_advice_is_given_for_what_is_there_alone() -> None:
    """Steps, conversations and models are explained where tools take them."""
    whole, little = told(*load_registry().tools), told(load_registry().get("echo"))
    for word in ("continuation_id", "next_step_required", "listmodels"):
        assert word in whole
        assert word not in little


def test_what_is_simulated_is_said() -> None:
    """Nobody who reads it takes the simulator's answers for a vendor's."""
    assert "SIMULATED" in told(make("a"), simulated=True)
    assert "SIMULATED" not in told(make("a"))


def test_a_toolset_without_tools_says_so() -> None:
    """As while its sources are away."""
    assert "no tools." in told(make("a"), toolset="lean")


def test_the_presentation_is_named_with_how_to_find_more() -> None:
    """Where few tools are listed, a model is told which, how many there are, and by what it finds and calls them."""
    code = told(make("search_tools"), make("read_stubs"), make("execute_code"), make("b"), toolset="code")
    assert "toolset 'code': 4 tools, as functions in modules: tools (2)." in code
    assert (
        "Presentation: code. Every tool can be called by its name, and few are listed: execute_code, read_stubs, "
        in code
    )
    assert "execute_code runs a Python program" in code
    assert "(await tools.function(argument=…))" in code
    assert "Presentation: classic." in told(make("b"))


def test_code_is_not_spoken_of_where_it_cannot_run() -> None:
    """As where the sandbox is excluded: no model is sent to a tool that it does not have."""
    assert "execute_code" not in told(make("search_tools"), make("a"), toolset="code")


def test_many_sources_fit_as_well() -> None:
    """With tools of hundreds of sources, as many modules as fit are named, and how many there are."""
    tools = [replace(make(f"t{number}"), source=f"a-source-{number}") for number in range(200)]
    sets = {"mine": Toolset("mine", ("*",), (), "hybrid", ("*",))}
    text = instructions(ToolCatalog(ToolRegistry(tools), sets, "mine").view("mine"), simulated=True)
    assert "t0, t1, " in text
    assert MAX_BYTES - 20 < len(text.encode()) <= MAX_BYTES
    assert "a_source_0 (1), a_source_1 (1), " in text
    assert "and more, 200 in all; see read_stubs." in text


MANY = {tool.name: tool for tool in (make(f"tool_{number}_{'x' * (number % 50)}") for number in range(150))}


@given(st.sets(st.sampled_from(list(MANY)), min_size=1))
def test_it_is_under_two_kilobytes_however_many_tools_there_are(names: set[str]) -> None:
    """As many names as fit, each whole, and how many there are."""
    text = told(*(MANY[name] for name in names), simulated=True)
    assert len(text.encode()) <= MAX_BYTES
    listed = text.partition("'full': ")[2].partition("\n")[0]
    shown, _, more = listed.partition(" and more, ")
    assert set(shown.removesuffix(".").split(", ")) <= names
    assert (more == f"{len(names)} in all; see list_tools.") or shown.count(",") == len(names) - 1
