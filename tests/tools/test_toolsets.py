"""Toolsets: what ships, what an operator may define, and what of it is refused with which words."""

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
"""Names by which existing callers, who know nothing of toolsets, call tools."""


def offered() -> ToolCatalog:
    """What a daemon offers that nobody configured."""
    own = (tool for tool in load_registry().tools if tool.source == "toold")
    return ToolCatalog(ToolRegistry(own), shipped_toolsets(), DEFAULT_TOOLSET)


def test_five_toolsets_ship() -> None:
    """Each of them, by the name that callers ask for; two of them for programs."""
    shown = {name: toolset.presentation for name, toolset in shipped_toolsets().items()}
    assert shown == {"lean": "classic", "standard": "classic", "full": "classic", "code": "code", "hybrid": "hybrid"}


@pytest.mark.parametrize("name", CALLERS_USE)
def test_names_that_callers_use_keep_working(name: str) -> None:
    """They are in ``full``, and in the toolset of a caller that asks for none."""
    offer = offered()
    assert offer.find_tool("full", name) is offer.find_tool(offer.default, name)


def test_what_ships_names_tools_that_are_there() -> None:
    """No toolset of the daemon's own names a tool that was renamed or removed."""
    names = [tool.name for tool in load_registry().tools]
    assert [problem for toolset in shipped_toolsets().values() for problem in problems_of(toolset, names)] == []


def test_each_is_within_the_next() -> None:
    """``lean`` is part of ``standard``, and that of ``full``, which is everything."""
    offer = offered()
    lean, standard, full = (set(offer.view(name).tools) for name in ("lean", "standard", "full"))
    assert lean < standard <= full == {tool.name for tool in offer.registry.tools}


def test_globs_say_what_is_in_it() -> None:
    """What any of ``include`` matches and none of ``exclude``; case counts, as it does in a tool's name."""
    toolset = Toolset("mine", include=("chat", "kimi_*"), exclude=("kimi_m*", "*_tools"))
    names = ["chat", "Chat", "chats", "kimi_upload_files", "kimi_manage_files", "kimi_chat_with_tools", "echo"]
    assert [name for name in names if toolset.contains(name)] == ["chat", "kimi_upload_files"]
    assert Toolset("all").contains("anything")


def test_a_table_is_a_toolset() -> None:
    """As toold.toml has it; what is left out is all tools, nothing excluded, each listed by itself."""
    assert read_toolsets({"a": {}, "b": {"include": ["x"], "exclude": ["y"], "presentation": "classic"}}) == {
        "a": Toolset("a", ("*",), (), "classic"),
        "b": Toolset("b", ("x",), ("y",), "classic"),
    }


def test_a_shipped_toolset_may_be_defined_anew() -> None:
    """An operator narrows ``standard`` for everybody who asks for none."""
    assert read_toolsets({"standard": {"exclude": ["sim_*"]}})["standard"].exclude == ("sim_*",)


def test_what_a_presentation_needs_belongs_to_its_toolset() -> None:
    """Whatever is included, and what its tools send a model to; but what is excluded by name is out."""
    small = Toolset("small", ("chat",), presentation="code")
    assert [name for name in (*CODE_TOOLS, "chat", "echo") if small.contains(name)] == [*CODE_TOOLS, "chat"]
    assert all(small.contains(name) and not small.lists(name) for name in ("describe_tools", "read_result"))
    assert Toolset("small", ("chat",)).contains(INIT_TOOL)
    assert not Toolset("small", ("chat",)).contains("execute_code")
    assert not Toolset("small", ("*",), ("execute_*",), "code").contains("execute_code")


def test_the_presentation_changes_what_is_listed() -> None:
    """``classic`` lists all, ``code`` its four tools, ``hybrid`` those and the ones that ``listed`` has."""
    names = ["chat", "chats", "echo", *CODE_TOOLS]
    toolsets = [Toolset("a"), Toolset("b", presentation="code"), Toolset("c", ("*",), (), "hybrid", ("chat*",))]
    shown = [[name for name in names if toolset.lists(name)] for toolset in toolsets]
    assert shown == [names, [*CODE_TOOLS], ["chat", "chats", *CODE_TOOLS]]


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ("lean", r"must be tables of toold\.toml: \[toolsets\.NAME\]"),
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
        ({"a": {"presentation": "small"}}, r"\[toolsets\.a\] presentation must be classic, code, hybrid"),
        ({"a": {"presentation": ["classic"]}}, "presentation must be classic"),
    ],
)
def test_a_toolset_that_cannot_be_used_is_refused_with_its_place(tables: object, says: str) -> None:
    """The message says which toolset, which key of it, and what to write."""
    with pytest.raises(ToolsetError, match=says):
        read_toolsets(tables)


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.text(), st.lists), max_size=3))
def test_whatever_stands_there_is_a_toolset_or_refused(tables: dict[str, object]) -> None:
    """Nothing that a file can hold is anything else than a toolset or an error of its own kind."""
    with suppress(ToolsetError):
        assert set(read_toolsets(tables)) == set(tables)


def test_the_documented_example_can_be_used() -> None:
    """What docs/tools.md shows of toold.toml is taken as it stands there."""
    page = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
    table = tomllib.loads(page.partition("```toml\n")[2].partition("```")[0])
    toolset = read_toolsets(table["toolsets"])[table["default_toolset"]]
    held = [tool.name for tool in load_registry().tools if toolset.contains(tool.name)]
    assert {"chat", "codereview", "kimi_upload_files"} < set(held)
    assert "kimi_manage_files" not in held


def test_a_misspelt_name_is_a_problem_that_is_told() -> None:
    """A plain name that no tool has, in either list; a glob may match nothing, since tools come and go."""
    toolset = Toolset("mine", include=("chat", "ehco", "kimi_*"), exclude=("zzz",))
    assert problems_of(toolset, ["chat", "echo"]) == [
        "toolset 'mine': include names 'ehco', but there is no such tool; did you mean 'echo'?",
        "toolset 'mine': exclude names 'zzz', but there is no such tool; `toold tools` lists them",
    ]


# --- what a listing costs --------------------------------------------------------------------------------------------

TOKENS = {"lean": 5_300, "standard": 19_500, "full": 19_500, "code": 820, "hybrid": 2_050}
"""What each listing came to when it was last thought about, by our own estimate; a new tool may raise it."""


@pytest.mark.parametrize("name", TOKENS)
def test_a_listing_does_not_grow_unnoticed(name: str) -> None:
    """Whoever connects pays for it: a tenth more fails, and is to be cut down, or to be meant."""
    cost = estimate_tokens([msgspec.json.encode(offered().view(name).infos).decode()])
    assert cost <= TOKENS[name] * 1.1, f"the listing of {name} came to {cost} tokens"
