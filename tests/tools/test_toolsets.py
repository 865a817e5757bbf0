"""Toolsets: the shipped ones, the definitions of an operator, and the errors for invalid definitions."""

import tomllib
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.tools import (
    DEFAULT_TOOLSET,
    ToolCatalog,
    ToolRegistry,
    Toolset,
    ToolsetError,
    estimate_tokens,
    load_registry,
    read_toolsets,
    shipped_toolsets,
)
from toold.tools.toolsets import CODE_TOOLS, INIT_TOOL, problems_of

CALLERS_USE = [
    "chat",
    "challenge",
    "consensus",
    "analyze",
    "codereview",
    "debug",
    "refactor",
    "secaudit",
    "precommit",
    "testgen",
    "docgen",
    "thinkdeep",
    "planner",
    "tracer",
    "kimi_upload_files",
    "kimi_chat_with_files",
    "kimi_chat_with_tools",
    "kimi_intent_analysis",
    "kimi_capture_headers",
    "kimi_manage_files",
    "glm_upload_file",
    "glm_web_search",
    "glm_payload_preview",
    "smart_file_query",
    "smart_file_download",
    "status",
    "version",
    "listmodels",
    "provider_capabilities",
    "health",
    "self-check",
    "activity",
    "toolcall_log_tail",
    "echo",
]
"""Tool names that existing callers without toolset support use."""


def offered() -> ToolCatalog:
    """The catalog of a daemon with the default configuration."""
    own = (tool for tool in load_registry().tools if tool.source == "toold")
    return ToolCatalog(ToolRegistry(own), shipped_toolsets(), DEFAULT_TOOLSET)


def test_the_shipped_toolsets_are_known() -> None:
    """Five toolsets ship; two of them are presented for programs."""
    shown = {name: toolset.presentation for name, toolset in shipped_toolsets().items()}
    assert shown == {"lean": "classic", "standard": "classic", "full": "classic", "code": "code", "hybrid": "hybrid"}


@pytest.mark.parametrize("name", CALLERS_USE)
def test_names_that_existing_callers_use_are_available(name: str) -> None:
    """Each name is in ``full`` and in the default toolset."""
    offer = offered()
    assert offer.find_tool("full", name) is offer.find_tool(offer.default, name)


def test_shipped_toolsets_name_only_existing_tools() -> None:
    """A shipped toolset does not name a tool that was renamed or removed."""
    names = [tool.name for tool in load_registry().tools]
    assert [problem for toolset in shipped_toolsets().values() for problem in problems_of(toolset, names)] == []


def test_the_shipped_toolsets_are_nested() -> None:
    """``lean`` is a subset of ``standard``, which is a subset of ``full``; ``full`` contains every tool."""
    offer = offered()
    lean, standard, full = (set(offer.view(name).tools) for name in ("lean", "standard", "full"))
    assert lean < standard <= full == {tool.name for tool in offer.registry.tools}


def test_globs_select_the_tools() -> None:
    """A toolset contains a tool that matches a glob of ``include`` and no glob of ``exclude``; matching is
    case-sensitive."""
    toolset = Toolset("mine", include=("chat", "kimi_*"), exclude=("kimi_m*", "*_tools"))
    names = ["chat", "Chat", "chats", "kimi_upload_files", "kimi_manage_files", "kimi_chat_with_tools", "echo"]
    assert [name for name in names if toolset.contains(name)] == ["chat", "kimi_upload_files"]
    assert Toolset("all").contains("anything")


def test_a_table_defines_a_toolset() -> None:
    """The defaults of a table in toold.toml are all tools, no exclusion and the classic presentation."""
    assert read_toolsets({"a": {}, "b": {"include": ["x"], "exclude": ["y"], "presentation": "classic"}}) == {
        "a": Toolset("a", ("*",), (), "classic"),
        "b": Toolset("b", ("x",), ("y",), "classic"),
    }


def test_a_shipped_toolset_can_be_redefined() -> None:
    """An operator can restrict ``standard``."""
    assert read_toolsets({"standard": {"exclude": ["sim_*"]}})["standard"].exclude == ("sim_*",)


def test_a_toolset_contains_the_tools_that_its_presentation_needs() -> None:
    """The presentation's tools and the tools that they refer to are included automatically, unless they are
    excluded."""
    small = Toolset("small", ("chat",), presentation="code")
    assert [name for name in (*CODE_TOOLS, "chat", "echo") if small.contains(name)] == [*CODE_TOOLS, "chat"]
    assert all(small.contains(name) and not small.lists(name) for name in ("describe_tools", "read_result"))
    assert Toolset("small", ("chat",)).contains(INIT_TOOL)
    assert not Toolset("small", ("chat",)).contains("execute_code")
    assert not Toolset("small", ("*",), ("execute_*",), "code").contains("execute_code")


def test_the_presentation_determines_the_listing() -> None:
    """``classic`` lists all tools, ``code`` only its own tools, and ``hybrid`` those and the tools that ``listed``
    names."""
    names = ["chat", "chats", "echo", *CODE_TOOLS]
    toolsets = [Toolset("a"), Toolset("b", presentation="code"), Toolset("c", ("*",), (), "hybrid", ("chat*",))]
    shown = [[name for name in names if toolset.lists(name)] for toolset in toolsets]
    assert shown == [names, [*CODE_TOOLS], ["chat", "chats", *CODE_TOOLS]]


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ("lean", r"must be set in toold\.toml, as tables \[toolsets\.NAME\]"),
        ({"my set": {}}, "a toolset name is 1–64 of .*, not 'my set'"),
        ({"full": {"exclude": ["x"]}}, r"\[toolsets\.full\] cannot be redefined"),
        ({"a": ["chat"]}, r"\[toolsets\.a\] must be a table"),
        ({"a": {"inlcude": ["chat"]}}, r"\[toolsets\.a\] has no key 'inlcude'; did you mean 'include'\?"),
        ({"a": {"zzz": 1}}, "the keys are include, exclude, presentation, listed"),
        ({"a": {"presentation": "hybrid"}}, r"\[toolsets\.a\] presentation = \"hybrid\" and listed require each other"),
        ({"a": {"listed": ["chat"]}}, "listed names the tools that are listed in addition to 00_INIT, search_tools"),
        ({"a": {"include": "chat"}}, r"\[toolsets\.a\] include must be a list"),
        ({"a": {"include": []}}, "must have at least one glob"),
        ({"a": {"exclude": ["chat", 5]}}, r"\[toolsets\.a\] exclude has '5', neither a tool name"),
        ({"a": {"exclude": ["a b"]}}, "exclude has 'a b'"),
        ({"a": {"presentation": "small"}}, r"\[toolsets\.a\] presentation must be one of classic, code, hybrid"),
        ({"a": {"presentation": ["classic"]}}, "presentation must be one of classic"),
    ],
)
def test_an_invalid_toolset_is_rejected(tables: object, says: str) -> None:
    """The message names the toolset and the key, and describes the valid form."""
    with pytest.raises(ToolsetError, match=says):
        read_toolsets(tables)


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.text(), st.lists, max_leaves=8), max_size=3))
def test_any_table_is_a_toolset_or_rejected(tables: dict[str, object]) -> None:
    """Any content of the tables is either read as toolsets or raises a ToolsetError."""
    with suppress(ToolsetError):
        assert set(read_toolsets(tables)) == set(tables)


def test_the_documented_example_is_valid() -> None:
    """The example of toold.toml in docs/tools.md is read as a toolset."""
    page = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
    table = tomllib.loads(page.partition("```toml\n")[2].partition("```")[0])
    toolset = read_toolsets(table["toolsets"])[table["default_toolset"]]
    held = [tool.name for tool in load_registry().tools if toolset.contains(tool.name)]
    assert {"chat", "codereview", "kimi_upload_files"} < set(held)
    assert "kimi_manage_files" not in held


def test_a_misspelt_tool_name_is_reported() -> None:
    """A plain name in either list that matches no tool is reported; a glob may match nothing."""
    toolset = Toolset("mine", include=("chat", "ehco", "kimi_*"), exclude=("zzz",))
    assert problems_of(toolset, ["chat", "echo"]) == [
        "toolset 'mine': include names 'ehco', but there is no such tool; did you mean 'echo'?",
        "toolset 'mine': exclude names 'zzz', but there is no such tool; `toold tools` lists them",
    ]


# --- size of the listings ---------------------------------------------------------------------------------------------

TOKENS = {"lean": 5_900, "standard": 22_500, "full": 22_500, "code": 820, "hybrid": 2_050}
"""The last reviewed size of each listing, in estimated tokens."""


@pytest.mark.parametrize("name", TOKENS)
def test_the_size_of_a_listing_is_bounded(name: str) -> None:
    """The listing may exceed the reviewed size by at most 10 percent, because every client pays for it."""
    cost = estimate_tokens([msgspec.json.encode(offered().view(name).infos).decode()])
    assert cost <= TOKENS[name] * 1.1, f"the listing of {name} came to {cost} tokens"
