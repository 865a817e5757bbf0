"""The stubs of many tools: index, signatures, modules, name conversion, and arbitrary schemas."""

import ast
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import mypy.api
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.protocol.error_codes import ToolNotFoundError
from toold.protocol.tool_call import Annotations
from toold.tools import JsonSchema, StubSet, Tool, ToolContext, load_registry, module_for

HINTS = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ANYTHING = {"type": "object"}


async def nothing(arguments: dict[str, Any], context: ToolContext) -> None:
    """Do nothing."""


def make(name: str, source: str = "toold", description: str = "Do it. Well.", **schema: Any) -> Tool:
    takes = JsonSchema({"type": "object", "additionalProperties": False, **schema})
    return Tool(name, description, takes, nothing, HINTS, source=source)


def test_functions_are_grouped_in_modules_by_source() -> None:
    """Built-in tools are in ``tools``, and tools of files are in a module named after their directory.

    No module name shadows an importable module or a builtin.
    """
    sources = {"own": "toold", "b": "my-crm", "c": "json", "d": "/home/me/pipelines/d.toml", "e": "tools", "f": "map"}
    stubs = module_for(make(name, source) for name, source in sources.items())
    modules = {name: stubs.python_name(name)[0] for name in sources}
    assert modules == {"own": "tools", "b": "my_crm", "c": "json_", "d": "pipelines", "e": "tools_", "f": "map_"}
    assert list(stubs.modules) == sorted(modules.values())


def test_the_index_has_a_line_per_function() -> None:
    """The line is below its module and contains a short description."""
    stubs = module_for([make("echo"), make("find-one", "crm", "Find one contact. Slowly.")])
    assert stubs.index() == "crm:\n  find_one: Find one contact\ntools:\n  echo: Do it"


def test_signatures_contains_the_requested_functions() -> None:
    """A function can be requested by tool name or function name; it appears once, below its module."""
    stubs = module_for([make("echo"), make("find-one", "crm"), make("other")])
    crm = '# crm\n\nasync def find_one() -> Any:\n    """Do it."""\n    ...'
    echo = '# tools\n\nasync def echo() -> Any:\n    """Do it."""\n    ...'
    assert stubs.signatures(["echo", "find-one", "crm.find_one"]) == f"{crm}\n\n{echo}"


@pytest.mark.parametrize("name", ["find_oen", "crm.find_oen"])
def test_an_unknown_name_gets_suggestions(name: str) -> None:
    """The suggestions include tool names and function names."""
    stubs = module_for([make("find_one", "crm")])
    with pytest.raises(ToolNotFoundError, match=r"did you mean '(crm\.)?find_one'"):
        stubs.signatures([name])
    with pytest.raises(ToolNotFoundError):
        stubs.python_name("zzz")


def test_names_are_converted_in_both_directions() -> None:
    """Each tool name maps to its function and back; an unknown function maps to no tool."""
    tools = [make(name, source) for source in ("toold", "crm") for name in ((f"{source}-a"), f"{source}_a", source)]
    stubs = module_for([*tools, make("list", "crm"), make("00_INIT")])
    for name in [tool.name for tool in tools] + ["list", "00_INIT"]:
        assert stubs.tool_name(*stubs.python_name(name)) == name
    assert stubs.python_name("list") == ("crm", "list_")
    assert stubs.tool_name("crm", "list") is None
    assert stubs.tool_name("nowhere", "list_") is None


def test_a_function_name_omits_the_module_prefix() -> None:
    """The source's prefix of a tool name is removed, unless another tool already has the shorter name."""
    names = ("my-crm_get-one", "my-crm_find", "find", "my-crm_", "my-crm_from")
    stubs = module_for([*(make(name, "my-crm") for name in names), make("my-crm_own")])
    functions = {name: stubs.python_name(name)[1] for name in names}
    assert functions == {
        "my-crm_get-one": "get_one", "my-crm_find": "my_crm_find", "find": "find", "my-crm_": "my_crm_",
        "my-crm_from": "from_",
    }  # fmt: skip
    assert stubs.python_name("my-crm_own") == ("tools", "my_crm_own")
    assert [stubs.tool_name("my_crm", function) for function in functions.values()] == list(names)


def test_arguments_are_converted_to_the_names_of_the_tool() -> None:
    """The tool can be given by its tool name or its function name."""
    stubs = module_for([make("find-one", "crm", properties={"user-id": {"type": "string"}})])
    assert stubs.arguments("find-one", {"user_id": "u"}) == {"user-id": "u"}
    assert stubs.arguments("crm.find_one", {"user_id": None}) == {}


def test_a_stub_called_outside_the_sandbox_raises_an_error(tmp_path: Path) -> None:
    """A stub module can be imported; its functions raise an error that refers to ``execute_code``."""
    source = module_for([make("echo")]).source_for("tools")
    module: dict[str, Any] = {}
    exec(compile(source, "tools.py", "exec"), module)  # noqa: S102 - generated by the test
    with pytest.raises(RuntimeError, match="runs inside execute_code"):
        module["echo"]().send(None)


def accepted(stubs: StubSet, directory: Path) -> str:
    """The errors of ``mypy --strict`` for all modules; empty if mypy finds no error."""
    directory.mkdir(exist_ok=True)
    for module in stubs.modules:
        (directory / f"{module}.py").write_text(stubs.source_for(module), encoding="utf-8")
    files = [str(directory / f"{module}.py") for module in stubs.modules]
    recursion_limit = sys.getrecursionlimit()
    result, failed, code = mypy.api.run(
        ["--strict", "--config-file=", f"--cache-dir={directory.parent / 'cache'}", "--no-color-output", *files]
    )
    sys.setrecursionlimit(recursion_limit)  # mypy raises it, and hypothesis forbids that in a test
    return "" if code == 0 else result + failed


def test_type_checkers_accept_the_stubs_of_every_tool(tmp_path: Path) -> None:
    """The stubs of the built-in tools pass ``mypy --strict``."""
    assert accepted(module_for(load_registry().tools), tmp_path / "stubs") == ""


NAMES = ["a-b", "a_b", "class", "list", "str", "Any", "TypedDict", "00_x", "__init__", "__getattr__", "A_B", "-", "aB"]
KEYS = ["a-b", "a_b", "class", "str", "int", "Any", "__x", "_", "", "more", "self", "None", "é", "e\u0301", "$x", "A"]
WORDS = ["", "Do it.", '"""', "\\", "a\nb", "type: ignore", "# type: int", "\x00", "'", 'x"', "mypy: ignore-errors"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(WORDS)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from(KEYS), SCALARS, max_size=2)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
PLACES = st.sampled_from(["#/$defs/P", "#/$defs/Q", "#", "#/properties/a-b"])


def parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | st.lists(KINDS, min_size=1, max_size=3, unique=True),
            "properties": st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
            "required": st.lists(st.sampled_from(KEYS), max_size=3, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "description": st.sampled_from(WORDS),
            "default": VALUES,
        },
    )


SCHEMAS = st.recursive(
    st.booleans()
    | st.builds(lambda kind: {"type": kind}, KINDS)
    | st.builds(lambda place: {"$ref": place}, PLACES)
    | st.builds(lambda values: {"enum": values}, st.lists(VALUES, min_size=1, max_size=4))
    | st.builds(lambda value: {"const": value}, VALUES),
    parts,
    max_leaves=8,
)


@st.composite
def hostile(draw: st.DrawFn) -> Tool:
    """A tool with an arbitrary schema, as an untrusted server may send it."""
    properties = {"a-b": {"type": "string"}, **draw(st.dictionaries(st.sampled_from(KEYS), SCHEMAS, max_size=4))}
    schema = {
        "properties": properties,
        "required": draw(st.lists(st.sampled_from(KEYS), max_size=3, unique=True)),
        "additionalProperties": draw(st.booleans() | SCHEMAS),
        "$defs": {"P": draw(SCHEMAS), "Q": draw(SCHEMAS)},
    }
    result = make(draw(st.sampled_from(NAMES)), draw(st.sampled_from(["toold", "a-b", "a_b", "crm"])), "", **schema)
    return replace(result, description=draw(st.sampled_from(WORDS)), output_schema=draw(st.none() | parts(SCHEMAS)))


TOOLS = st.lists(hostile(), min_size=1, max_size=6, unique_by=lambda tool: tool.name)


@settings(deadline=None, max_examples=settings().max_examples // 5, suppress_health_check=[HealthCheck.too_slow])
@given(TOOLS)
def test_stubs_are_valid_python_for_any_schema(tools: Sequence[Tool]) -> None:
    """Every module compiles and contains a function for each tool."""
    stubs = module_for(tools)
    functions = set()
    for module in stubs.modules:
        source = stubs.source_for(module)
        compile(source, module, "exec")
        functions |= {(module, part.name) for part in ast.parse(source).body if isinstance(part, ast.AsyncFunctionDef)}
    assert functions == {stubs.python_name(tool.name) for tool in tools}
    for tool in tools:
        assert stubs.tool_name(*stubs.python_name(tool.name)) == tool.name
        compile(stubs.signatures([tool.name]), "stub", "exec")


@pytest.mark.slow
@settings(deadline=None, max_examples=3, suppress_health_check=list(HealthCheck))
@given(tools=TOOLS)
def test_type_checkers_accept_stubs_for_any_schema(
    tmp_path_factory: pytest.TempPathFactory, tools: Sequence[Tool]
) -> None:
    """The stubs pass ``mypy --strict``."""
    directory = tmp_path_factory.getbasetemp() / "checked"
    directory.mkdir(exist_ok=True)
    assert accepted(module_for(tools), directory / "stubs") == ""
