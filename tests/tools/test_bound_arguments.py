"""Bound arguments: the operator sets them, and callers neither see nor send them."""

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, model_validator
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.tool_call import Annotations
from toold.tools import (
    Arguments,
    BindingError,
    JsonSchema,
    Tool,
    ToolBinder,
    ToolRegistry,
    bind,
    read_bindings,
    read_source_bindings,
    read_values,
)
from toold.tools.secret_location import MAX_SECRET_BYTES

CANARY = "canary-5d81c0"
SCHEMA = {
    "type": "object",
    "properties": {
        "locationId": {"type": "string", "minLength": 5},
        "limit": {"type": "integer"},
        "query": {"type": "string"},
    },
    "required": ["locationId", "query"],
    "additionalProperties": False,
    "examples": [{"locationId": CANARY}],
    "allOf": [{"required": ["locationId"]}, {"properties": {"locationId": {"type": "string"}}}],
    "dependentRequired": {"limit": ["locationId"]},
}


class Search(Arguments):
    locationId: str  # noqa: N815 - the name in the API
    query: str
    limit: int = 5
    kind: Literal["a", "b"] = "a"

    @model_validator(mode="after")
    def _told(self) -> "Search":
        if self.query == "wrong":
            raise ValueError(f"no query {self.query} at {self.locationId}")
        return self


async def function(arguments: Any, _: Any) -> Any:
    return arguments if isinstance(arguments, dict) else arguments.model_dump()


def tool(arguments: type[BaseModel] | JsonSchema, name: str = "crm_search", source: str = "crm") -> Tool:
    return Tool(name, "Search.", arguments, function, Annotations(True, False, False, True), source=source)


def bound(*tools: Tool, **table: Any) -> list[Tool]:
    values = read_values(read_bindings({"crm_*": table}))
    registry, binding_errors = ToolBinder(values).bind(ToolRegistry(tools))
    assert binding_errors == []
    return list(registry.tools)


KINDS = pytest.mark.parametrize("arguments", [Search, JsonSchema(SCHEMA)], ids=["model", "schema"])


@KINDS
async def test_a_bound_argument_is_hidden_from_the_schema_and_passed_to_the_tool(arguments: Any) -> None:
    """The listing contains neither its name nor its value; the function receives the value."""
    [bound_tool] = bound(tool(arguments), locationId=CANARY)
    assert "locationId" not in str(bound_tool.info)
    assert CANARY not in str(bound_tool.info) + repr(bound_tool)
    assert bound_tool.info.input_schema["required"] == ["query"]
    returned = await bound_tool.run(bind(bound_tool, {"query": "x"}), None)  # type: ignore[arg-type] # the function ignores its context
    assert (returned["locationId"], returned["query"]) == (CANARY, "x")


@KINDS
def test_a_caller_cannot_set_a_bound_argument(arguments: Any) -> None:
    """Every value is rejected, including the bound one.

    The message names the argument and is the same for every value.
    """
    [bound_tool] = bound(tool(arguments), locationId=CANARY)
    messages = {_refusal(bound_tool, {"query": "x", "locationId": value}).message for value in (CANARY, "other", None)}
    assert messages == {"crm_search: locationId is set by the daemon's operator; omit it."}


@KINDS
def test_other_errors_do_not_reveal_the_bound_argument(arguments: Any) -> None:
    """Errors about other arguments contain neither the name nor the value of the bound argument."""
    [bound_tool] = bound(tool(arguments), locationId=CANARY)
    for wrong in ({}, {"query": 5}, {"query": "x", "location": "y"}, {"query": "x", "limit": "z"}):
        problem = _refusal(bound_tool, wrong)
        assert CANARY not in f"{problem.message}{problem.details}"
        assert "locationId" not in problem.message


def test_a_validator_message_does_not_reveal_the_bound_value() -> None:
    """A model's validator may quote the bound value; the error masks it."""
    [bound_tool] = bound(tool(Search), locationId=CANARY)
    problem = _refusal(bound_tool, {"query": "wrong"})
    assert "no query wrong at [bound]" in problem.message
    assert CANARY not in f"{problem.message}{problem.details}"


@KINDS
@pytest.mark.parametrize(("argument", "value"), [("locationId", 5), ("limit", "many"), ("query", ["x"])])
def test_a_tool_whose_bound_value_does_not_match_is_omitted(arguments: Any, argument: str, value: Any) -> None:
    """The registry omits the tool and reports the problem without the value."""
    values = read_values(read_bindings({"crm_search": {argument: value}}))
    registry, [binding_error] = ToolBinder(values).bind(ToolRegistry([tool(arguments)]))
    assert registry.tools == ()
    assert registry.problems[0] == binding_error
    assert f"{argument}: the value does not match the schema of this argument of crm_search" in binding_error
    assert "many" not in binding_error


def test_a_variable_is_converted_to_the_type_of_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a variable becomes a number for a number and stays text for text; text that is not a number is
    rejected."""
    monkeypatch.setenv("CRM_LIMIT", "50")
    [bound_tool] = bound(tool(JsonSchema(SCHEMA)), limit={"env": "CRM_LIMIT"}, query={"env": "CRM_LIMIT"})
    assert bound_tool.bound == {"limit": 50, "query": "50"}
    monkeypatch.setenv("CRM_LIMIT", "fifty")
    values = read_values(read_bindings({"*": {"limit": {"env": "CRM_LIMIT"}}}))
    assert len(ToolBinder(values).bind(ToolRegistry([tool(Search)]))[1]) == 1


def test_tools_without_the_bound_argument_are_unchanged() -> None:
    """A glob applies only to tools that have the argument; a glob that matches no such tool is reported as a
    problem."""
    values = read_values(read_bindings({"*": {"locationId": CANARY}, "crn_*": {"query": "x"}}))
    plain = tool(JsonSchema({"type": "object", "properties": {}}), "echo")
    registry, _ = ToolBinder(values).bind(ToolRegistry([plain, tool(Search)]))
    assert registry.get("echo") is plain
    assert list(registry.problems) == [
        "[bind.'crn_*'] query: no matching tool has this argument; `toold tools NAME` shows the arguments of a tool"
    ]


def test_source_bindings_apply_only_to_the_tools_of_the_source() -> None:
    """A tool of another source with the same argument is not bound."""
    values = read_values(read_source_bindings("crm", {"locationId": CANARY}))
    registry, _ = ToolBinder(values).bind(ToolRegistry([tool(Search), tool(Search, "other_search", "other")]))
    assert [bool(tool.bound) for tool in registry.tools] == [True, False]


def test_values_are_read_from_files(tmp_path: Path) -> None:
    """The value excludes the final line end, and each read returns the current content."""
    file = tmp_path / "location"
    file.write_text(f"{CANARY}\n")
    [binding] = read_bindings({"crm_*": {"locationId": {"file": str(file)}}})
    assert (binding.read(), binding.secret) == (CANARY, True)
    file.write_text("another")
    assert binding.read() == "another"


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"\n", "is empty"), (b"\xff", "UTF-8"), (b"x" * 20_000, "bytes")],
)
def test_an_unusable_value_file_is_reported(tmp_path: Path, content: bytes | None, message: str) -> None:
    """The error names the file without its directory."""
    file = tmp_path / "location"
    if content is not None:
        file.write_bytes(content)
    [binding] = read_bindings({"crm_*": {"locationId": {"file": str(file)}}})
    with pytest.raises(BindingError, match=rf"locationId: the file location .*{message}"):
        binding.read()
    assert MAX_SECRET_BYTES < 20_000


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "must be set in toold.toml"),
        ({"crm search": {}}, "is neither a tool name nor a glob"),
        ({"crm": "x"}, "must be a table of arguments"),
        ({"crm": {"": "x"}}, "is not an argument name"),
        ({"crm": {"a": {}}}, "must be a value, {value = "),
        ({"crm": {"a": {"env": "A", "file": "b"}}}, "must be a value, {value = "),
        ({"crm": {"a": {"var": "A"}}}, "must be a value, {value = "),
        ({"crm": {"a": {"env": "A B"}}}, "env must be the name of a variable"),
        ({"crm": {"a": {"file": 5}}}, "file must be the path of a file"),
        ({"crm": {"a": object()}}, "cannot be represented in JSON"),
    ],
)
def test_an_invalid_binding_is_rejected(tables: object, message: str) -> None:
    """The message names the place in the configuration and the allowed form."""
    with pytest.raises(BindingError) as refused:
        read_bindings(tables)
    assert message in str(refused.value)


def test_an_unset_variable_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the variable."""
    monkeypatch.delenv("CRM_LOCATION", raising=False)
    with pytest.raises(BindingError, match="the variable CRM_LOCATION is not set"):
        read_values(read_bindings({"crm": {"a": {"env": "CRM_LOCATION"}}}))


def test_a_tool_is_bound_once() -> None:
    """A registry that has more tools keeps the bound ones, so that a source that becomes ready binds only its own."""
    binder = ToolBinder(read_values(read_bindings({"crm_*": {"locationId": CANARY}})))
    first, second = tool(JsonSchema(SCHEMA), "crm_a"), tool(JsonSchema(SCHEMA), "crm_b")
    before, _ = binder.bind(ToolRegistry([first]))
    after, _ = binder.bind(ToolRegistry([first, second]))
    assert after.get("crm_a") is before.get("crm_a")
    assert "locationId" not in str(after.get("crm_b").info)


def test_a_source_binding_applies_to_its_tools_only() -> None:
    """The tools of another source keep the argument, and a binding without a matching tool is a problem."""
    values = read_values(
        [*read_source_bindings("crm", {"locationId": CANARY}), *read_bindings({"other_*": {"limit": 3}})]
    )
    registry, errors = ToolBinder(values).bind(
        ToolRegistry([tool(JsonSchema(SCHEMA), "a", "crm"), tool(JsonSchema(SCHEMA), "b", "shop")])
    )
    assert errors == []
    assert "locationId" not in registry.get("a").info.input_schema["properties"]
    assert "locationId" in registry.get("b").info.input_schema["properties"]
    [problem] = registry.problems
    assert "no matching tool has this argument" in problem


def _refusal(bound_tool: Tool, arguments: dict[str, Any]) -> InvalidArgumentsError:
    with pytest.raises(InvalidArgumentsError) as refused:
        bind(bound_tool, arguments)
    return refused.value
