"""Arguments that the operator has bound."""

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
    ToolRegistry,
    bind,
    read_bindings,
    read_source_bindings,
    read_values,
    with_bound,
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
    locationId: str  # noqa: N815 - as an API has it
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
    registry, misfits = with_bound(ToolRegistry(tools), values)
    assert misfits == []
    return list(registry.tools)


KINDS = pytest.mark.parametrize("arguments", [Search, JsonSchema(SCHEMA)], ids=["model", "schema"])


@KINDS
async def test_a_bound_argument_is_gone_from_the_schema_and_there_for_the_tool(arguments: Any) -> None:
    """Neither its name nor its value is listed; the function has it."""
    [one] = bound(tool(arguments), locationId=CANARY)
    assert "locationId" not in str(one.info)
    assert CANARY not in str(one.info) + repr(one)
    assert one.info.input_schema["required"] == ["query"]
    returned = await one.run(bind(one, {"query": "x"}), None)  # type: ignore[arg-type] # the function asks for none
    assert (returned["locationId"], returned["query"]) == (CANARY, "x")


@KINDS
def test_nobody_sets_what_is_bound(arguments: Any) -> None:
    """Not even to the very value; the refusal names the argument, and is the same for any value."""
    [one] = bound(tool(arguments), locationId=CANARY)
    said = {_refusal(one, {"query": "x", "locationId": value}).message for value in (CANARY, "other", None)}
    assert said == {"crm_search: locationId is set by the daemon's operator; omit it."}


@KINDS
def test_other_mistakes_say_nothing_of_it(arguments: Any) -> None:
    """What is missing, surplus or wrong is told without the argument's name and value."""
    [one] = bound(tool(arguments), locationId=CANARY)
    for wrong in ({}, {"query": 5}, {"query": "x", "location": "y"}, {"query": "x", "limit": "z"}):
        problem = _refusal(one, wrong)
        assert CANARY not in f"{problem.message}{problem.details}"
        assert "locationId" not in problem.message


def test_a_check_of_several_fields_does_not_tell_it() -> None:
    """A tool's own words may quote the value: it is taken out."""
    [one] = bound(tool(Search), locationId=CANARY)
    problem = _refusal(one, {"query": "wrong"})
    assert "no query wrong at [bound]" in problem.message
    assert CANARY not in f"{problem.message}{problem.details}"


@KINDS
@pytest.mark.parametrize(("argument", "value"), [("locationId", 5), ("limit", "many"), ("query", ["x"])])
def test_a_value_that_does_not_fit_is_told_and_its_tool_left_out(arguments: Any, argument: str, value: Any) -> None:
    """A tool must not run without what its operator binds; the sentence has no value."""
    values = read_values(read_bindings({"crm_search": {argument: value}}))
    registry, [misfit] = with_bound(ToolRegistry([tool(arguments)]), values)
    assert registry.tools == ()
    assert registry.problems[0] == misfit
    assert f"{argument}: the value does not match the schema of this argument of crm_search" in misfit
    assert "many" not in misfit


def test_a_variables_text_becomes_the_type_that_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number for a number, text for text; what is no number does not fit."""
    monkeypatch.setenv("CRM_LIMIT", "50")
    [one] = bound(tool(JsonSchema(SCHEMA)), limit={"env": "CRM_LIMIT"}, query={"env": "CRM_LIMIT"})
    assert one.bound == {"limit": 50, "query": "50"}
    monkeypatch.setenv("CRM_LIMIT", "fifty")
    values = read_values(read_bindings({"*": {"limit": {"env": "CRM_LIMIT"}}}))
    assert len(with_bound(ToolRegistry([tool(Search)]), values)[1]) == 1


def test_tools_without_the_argument_stay_as_they_are() -> None:
    """A glob means those that have it; one that means none is pointed out."""
    values = read_values(read_bindings({"*": {"locationId": CANARY}, "crn_*": {"query": "x"}}))
    plain = tool(JsonSchema({"type": "object", "properties": {}}), "echo")
    registry, _ = with_bound(ToolRegistry([plain, tool(Search)]), values)
    assert registry.get("echo") is plain
    assert list(registry.problems) == [
        "[bind.'crn_*'] query: no matching tool has this argument; `toold tools NAME` shows the arguments of a tool"
    ]


def test_a_sources_bindings_are_for_its_own_tools() -> None:
    """Another source's tool with the same argument keeps it."""
    values = read_values(read_source_bindings("crm", {"locationId": CANARY}))
    registry, _ = with_bound(ToolRegistry([tool(Search), tool(Search, "other_search", "other")]), values)
    assert [bool(one.bound) for one in registry.tools] == [True, False]


def test_values_come_from_files(tmp_path: Path) -> None:
    """Without the line end that editors add; and they are read anew each time."""
    file = tmp_path / "location"
    file.write_text(f"{CANARY}\n")
    [binding] = read_bindings({"crm_*": {"locationId": {"file": str(file)}}})
    assert (binding.read(), binding.secret) == (CANARY, True)
    file.write_text("another")
    assert binding.read() == "another"


@pytest.mark.parametrize(
    ("content", "said"), [(None, "cannot be read"), (b"\n", "is empty"), (b"\xff", "UTF-8"), (b"x" * 20_000, "bytes")]
)
def test_a_file_that_has_no_value_is_told(tmp_path: Path, content: bytes | None, said: str) -> None:
    """By its name alone."""
    file = tmp_path / "location"
    if content is not None:
        file.write_bytes(content)
    [binding] = read_bindings({"crm_*": {"locationId": {"file": str(file)}}})
    with pytest.raises(BindingError, match=rf"locationId: the file location .*{said}"):
        binding.read()
    assert MAX_SECRET_BYTES < 20_000


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([], "must be tables of toold.toml"),
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
def test_what_cannot_be_a_binding_is_refused(tables: object, said: str) -> None:
    """The message says where it stands and what it may be."""
    with pytest.raises(BindingError) as refused:
        read_bindings(tables)
    assert said in str(refused.value)


def test_a_variable_that_is_not_set_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name."""
    monkeypatch.delenv("CRM_LOCATION", raising=False)
    with pytest.raises(BindingError, match="the variable CRM_LOCATION is not set"):
        read_values(read_bindings({"crm": {"a": {"env": "CRM_LOCATION"}}}))


def _refusal(one: Tool, arguments: dict[str, Any]) -> InvalidArgumentsError:
    with pytest.raises(InvalidArgumentsError) as refused:
        bind(one, arguments)
    return refused.value
