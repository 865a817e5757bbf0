"""The tool catalog: tools per toolset, listings, revisions, and errors about tools outside a toolset."""

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
    """Listing and calling use the same tools, sorted by name."""
    small = offer(make("a2"), make("b"), make("a1")).view("small")
    assert [info.name for info in small.infos] == list(small.tools) == ["a1", "a2"]


def test_a_toolset_view_is_cached() -> None:
    """The catalog does not create a view for each request."""
    catalog = offer(make("a"))
    assert catalog.view("small") is catalog.view("small")


def test_the_revision_changes_with_the_listing_of_its_toolset() -> None:
    """A new or changed tool changes the revision of the toolsets that list it, and of no other toolset."""
    before = offer(make("a1"), make("b"))
    described, more = offer(make("a1", "Else."), make("b")), offer(make("a1"), make("b"), make("b2"))
    assert described.view("small").rev != before.view("small").rev
    assert more.view("small").rev == before.view("small").rev
    assert more.view("large").rev != before.view("large").rev


def test_find_tool_returns_a_tool_of_the_toolset() -> None:
    """``find_tool`` returns the registry's tool object."""
    a = make("a1")
    assert offer(a).find_tool("small", "a1") is a


def test_a_tool_outside_the_toolset_is_not_found() -> None:
    """The message names the session's toolset and each toolset that contains the tool."""
    with pytest.raises(ToolNotFoundError) as caught:
        offer(make("a1"), make("a2")).find_tool("other", "a2")
    assert caught.value.message == (
        "The tool 'a2' is not in the toolset 'other' of this session; connect with a toolset that has it: small, large."
    )
    assert caught.value.details == {"suggestions": [], "toolsets": ["small", "large"]}


@pytest.mark.parametrize(
    ("toolset", "usable", "reported"),
    [
        ("other", ("other", "large"), "of this session; connect with a toolset that has it: large."),
        ("other", ("other",), "of this session; no toolset that you may use has it."),
        ("gone", ("gone", "other"), "which was removed; connect again with one of other."),
        ("gone", ("gone",), "which was removed; you may use no other toolset."),
    ],
)
def test_only_usable_toolsets_are_suggested(toolset: str, usable: tuple[str, ...], reported: str) -> None:
    """The error does not name toolsets that the caller's token does not permit."""
    with pytest.raises(ToolNotFoundError) as caught:
        offer(make("a1"), make("a2")).find_tool(toolset, "a2", usable=usable)
    assert caught.value.message.endswith(reported)
    assert caught.value.details is not None
    assert all(f"{name}." in reported for name in caught.value.details["toolsets"])


def test_a_misspelt_name_gets_only_callable_suggestions() -> None:
    """The suggestions exclude tools outside the toolset."""
    catalog = offer(make("alpha"), make("blpha"))
    with pytest.raises(ToolNotFoundError, match="no tool 'alhpa'; did you mean 'alpha' or 'blpha'"):
        catalog.find_tool("large", "alhpa")
    with pytest.raises(ToolNotFoundError, match=r"no tool 'alhpa'; did you mean 'alpha'\?"):
        catalog.find_tool("small", "alhpa")


def test_a_removed_toolset_contains_no_tools() -> None:
    """Sessions of a removed toolset get an empty listing, and calls fail with a request to reconnect."""
    catalog = offer(make("a1"))
    assert catalog.view("gone").infos == ()
    with pytest.raises(ToolNotFoundError, match=r"'gone', which was removed; .* one of small, large, other"):
        catalog.find_tool("gone", "a1")


def test_a_withheld_tool_is_not_listed_and_is_refused_with_its_reason() -> None:
    """In a toolset that contains the tool, the error gives the reason; in any other toolset the tool is not found."""
    catalog = offer(replace(make("b1"), withheld="b1 has changed."), make("a1"))
    assert list(catalog.view("large").tools) == ["a1"]
    with pytest.raises(PermissionDeniedError, match="b1 has changed"):
        catalog.find_tool("large", "b1")
    with pytest.raises(ToolNotFoundError):
        catalog.find_tool("small", "b1")


def test_unknown_toolset_names_are_not_cached() -> None:
    """Requests for unknown toolsets do not use memory permanently."""
    catalog = offer(make("a1"))
    assert catalog.view("gone") is not catalog.view("gone")


def test_only_problems_of_operator_toolsets_are_reported() -> None:
    """The shipped toolsets may name tools that this daemon does not have."""
    mine = Toolset("mine", include=("alpha", "alhpa"))
    catalog = ToolCatalog(ToolRegistry([make("alpha")]), {**shipped_toolsets(), "mine": mine}, "mine")
    assert catalog.problems == [
        "toolset 'mine': include names 'alhpa', but there is no such tool; did you mean 'alpha'?"
    ]


def test_an_unlisted_tool_can_be_called() -> None:
    """The presentation restricts only the listing."""
    sets = {"code": Toolset("code", presentation="code")}
    catalog = ToolCatalog(ToolRegistry([make("00_INIT"), make("execute_code"), make("echo")]), sets, "code")
    assert [info.name for info in catalog.view("code").infos] == ["00_INIT", "execute_code"]
    assert catalog.find_tool("code", "echo").name == "echo"


def test_the_init_tool_can_be_omitted_from_the_listing() -> None:
    """The tool can still be called."""
    tools = ToolRegistry([make("00_INIT"), make("echo")])
    reported, untold = ToolCatalog(tools, TOOLSETS, "large"), ToolCatalog(tools, TOOLSETS, "large", list_init=False)
    assert [info.name for info in reported.view("small").infos] == ["00_INIT"]
    assert untold.view("small").infos == ()
    assert untold.find_tool("small", "00_INIT").name == "00_INIT"


def test_stubs_are_created_once_for_the_tools_that_a_program_may_call() -> None:
    """The stubs exclude the tools that a model uses to write the program."""
    catalog = offer(make("echo"), make("00_INIT"), make("read_stubs"), make("execute_code"), make("search_tools"))
    assert catalog.view("large").stubs is catalog.view("large").stubs
    assert catalog.view("large").stubs.modules == {"tools": ("echo", "search_tools")}


def test_the_search_index_is_created_once_for_all_callable_tools() -> None:
    """The index includes unlisted tools, and a search does not index the tools again."""
    selection = ToolsetView(ToolRegistry([make("echo"), make("execute_code")]), Toolset("code", presentation="code"))
    assert [info.name for info in selection.infos] == ["execute_code"]
    assert [info.name for info in selection.index.tools] == ["echo", "execute_code"]
    assert selection.index is selection.index


def test_stubs_are_created_again_when_the_tools_change() -> None:
    """The new stubs contain the current tools; the function name of an unchanged tool stays the same."""
    before, after = offer(make("self-check"), make("old")), offer(make("self-check"), make("new"))
    assert before.view("large").stubs.modules == {"tools": ("old", "self_check")}
    assert after.view("large").stubs.modules == {"tools": ("new", "self_check")}
