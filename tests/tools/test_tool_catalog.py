"""What is offered: tools by toolset, the listing and its revision, and what is said of a tool that is outside."""

from dataclasses import replace

import pytest
from toold.protocol.error_codes import PermissionDeniedError, ToolNotFoundError
from toold.tools import (
    Arguments,
    Tool,
    ToolCatalog,
    ToolContext,
    ToolRegistry,
    Toolset,
    ToolsetView,
    shipped_toolsets,
    tool,
)

TOOLSETS = {
    "small": Toolset("small", include=("a*",)),
    "large": Toolset("large"),
    "other": Toolset("other", include=("a*",), exclude=("a2",)),
}


def make(name: str, description: str = "Do it.") -> Tool:
    async def do(arguments: Arguments, context: ToolContext) -> None: ...

    do.__doc__ = description
    return tool(name, read_only=True, open_world=False)(do)


def offer(*tools: Tool) -> ToolCatalog:
    return ToolCatalog(ToolRegistry(tools), TOOLSETS, "large")


def test_a_toolset_has_its_tools_in_a_stable_order() -> None:
    """Listing and calling have the same ones, by name."""
    small = offer(make("a2"), make("b"), make("a1")).view("small")
    assert [info.name for info in small.infos] == list(small.tools) == ["a1", "a2"]


def test_a_selection_is_made_once() -> None:
    """Not for each request."""
    made = offer(make("a"))
    assert made.view("small") is made.view("small")


def test_rev_changes_with_the_listing_of_its_own_toolset() -> None:
    """A tool that comes or is described anew changes the revision of those that list it, and of no other."""
    before = offer(make("a1"), make("b"))
    described, more = offer(make("a1", "Else."), make("b")), offer(make("a1"), make("b"), make("b2"))
    assert described.view("small").rev != before.view("small").rev
    assert more.view("small").rev == before.view("small").rev
    assert more.view("large").rev != before.view("large").rev


def test_a_tool_is_found_within_its_toolset() -> None:
    """What is called is the registry's own tool."""
    a = make("a1")
    assert offer(a).find_tool("small", "a1") is a


def test_a_tool_outside_is_not_found_and_its_toolsets_are_told() -> None:
    """The message names the toolset of the session, and each that has the tool."""
    with pytest.raises(ToolNotFoundError) as caught:
        offer(make("a1"), make("a2")).find_tool("other", "a2")
    assert caught.value.message == (
        "The tool 'a2' is not in the toolset 'other' of this session; connect with a toolset that has it: small, large."
    )
    assert caught.value.details == {"suggestions": [], "toolsets": ["small", "large"]}


@pytest.mark.parametrize(
    ("toolset", "usable", "told"),
    [
        ("other", ("other", "large"), "of this session; connect with a toolset that has it: large."),
        ("other", ("other",), "of this session; no toolset that you may use has it."),
        ("gone", ("gone", "other"), "which was removed; connect again with one of other."),
        ("gone", ("gone",), "which was removed; you may use no other toolset."),
    ],
)
def test_only_toolsets_that_may_be_used_are_told(toolset: str, usable: tuple[str, ...], told: str) -> None:
    """A token that is for some of them learns nothing of the others, and is not sent to them in vain."""
    with pytest.raises(ToolNotFoundError) as caught:
        offer(make("a1"), make("a2")).find_tool(toolset, "a2", usable=usable)
    assert caught.value.message.endswith(told)
    assert caught.value.details is not None
    assert all(f"{name}." in told for name in caught.value.details["toolsets"])


def test_a_misspelt_name_is_answered_with_names_that_may_be_called() -> None:
    """A suggestion that lies outside the toolset would be refused in its turn."""
    made = offer(make("alpha"), make("blpha"))
    with pytest.raises(ToolNotFoundError, match="no tool 'alhpa'; did you mean 'alpha' or 'blpha'"):
        made.find_tool("large", "alhpa")
    with pytest.raises(ToolNotFoundError, match=r"no tool 'alhpa'; did you mean 'alpha'\?"):
        made.find_tool("small", "alhpa")


def test_a_toolset_that_is_not_there_any_more_holds_nothing() -> None:
    """Its sessions are not let loose on all tools; they are told to connect again."""
    made = offer(make("a1"))
    assert made.view("gone").infos == ()
    with pytest.raises(ToolNotFoundError, match=r"'gone', which was removed; .* one of small, large, other"):
        made.find_tool("gone", "a1")


def test_a_withheld_tool_is_not_listed_and_refused_with_its_reason() -> None:
    """Where the toolset holds it; elsewhere it is outside, as any other."""
    made = offer(replace(make("b1"), withheld="b1 has changed."), make("a1"))
    assert list(made.view("large").tools) == ["a1"]
    with pytest.raises(PermissionDeniedError, match="b1 has changed"):
        made.find_tool("large", "b1")
    with pytest.raises(ToolNotFoundError):
        made.find_tool("small", "b1")


def test_names_that_do_not_exist_are_not_kept() -> None:
    """Asking for toolsets that there are not does not fill the memory."""
    made = offer(make("a1"))
    assert made.view("gone") is not made.view("gone")


def test_problems_are_those_of_the_operators_toolsets() -> None:
    """What ships may name tools that a daemon with tools of its own has not."""
    mine = Toolset("mine", include=("alpha", "alhpa"))
    made = ToolCatalog(ToolRegistry([make("alpha")]), {**shipped_toolsets(), "mine": mine}, "mine")
    assert made.problems == ["toolset 'mine': include names 'alhpa', but there is no such tool; did you mean 'alpha'?"]


def test_what_is_not_listed_can_be_called() -> None:
    """The presentation bounds the listing alone."""
    sets = {"code": Toolset("code", presentation="code")}
    made = ToolCatalog(ToolRegistry([make("00_INIT"), make("execute_code"), make("echo")]), sets, "code")
    assert [info.name for info in made.view("code").infos] == ["00_INIT", "execute_code"]
    assert made.find_tool("code", "echo").name == "echo"


def test_the_init_tool_can_be_left_out_of_the_listing() -> None:
    """And be called all the same."""
    tools = ToolRegistry([make("00_INIT"), make("echo")])
    told, untold = ToolCatalog(tools, TOOLSETS, "large"), ToolCatalog(tools, TOOLSETS, "large", list_init=False)
    assert [info.name for info in told.view("small").infos] == ["00_INIT"]
    assert untold.view("small").infos == ()
    assert untold.find_tool("small", "00_INIT").name == "00_INIT"


def test_functions_are_made_once_of_what_a_program_may_call() -> None:
    """Not of the tools by which a model comes to write it."""
    made = offer(make("echo"), make("00_INIT"), make("read_stubs"), make("execute_code"), make("search_tools"))
    assert made.view("large").stubs is made.view("large").stubs
    assert made.view("large").stubs.modules == {"tools": ("echo", "search_tools")}


def test_the_index_is_made_once_of_all_that_may_be_called() -> None:
    """What is not listed is found too, and no search reads the tools again."""
    selection = ToolsetView(ToolRegistry([make("echo"), make("execute_code")]), Toolset("code", presentation="code"))
    assert [info.name for info in selection.infos] == ["execute_code"]
    assert [info.name for info in selection.index.tools] == ["echo", "execute_code"]
    assert selection.index is selection.index


def test_functions_are_made_anew_as_tools_change() -> None:
    """Of what there is then; a name that stayed is the same."""
    before, after = offer(make("self-check"), make("old")), offer(make("self-check"), make("new"))
    assert before.view("large").stubs.modules == {"tools": ("old", "self_check")}
    assert after.view("large").stubs.modules == {"tools": ("new", "self_check")}
