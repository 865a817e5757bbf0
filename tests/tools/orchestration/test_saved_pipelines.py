"""Saved pipelines: files that define tools."""

from pathlib import Path
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import bind, load_registry
from toold.tools.json_schema import JsonSchema
from toold.tools.orchestration.saved_pipelines import SavedPipelineError, pipelines_in, saved_pipeline

GOOD = """
description = "Greet somebody twice."
timeout_s = 60
return = "{{second}}"

[parameters]
required = ["name"]
[parameters.properties.name]
type = "string"
[parameters.properties.greeting]
type = "string"
default = "Hello"

[[steps]]
id = "first"
tool_name = "note"
args = { value = "{{input.greeting}} {{input.name}}" }

[[steps]]
id = "second"
tool_name = "note"
args = { value = "{{first}}!" }
"""
YAML = """
description: Greet somebody.
parameters: {properties: {name: {type: string}}}
steps:
  - {id: first, tool_name: note, args: {value: "{{input.name}}"}}
"""


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text)
    return path


class Running:
    """The parts of ``ToolContext`` that a saved pipeline uses."""

    def __init__(self, calls: Any, tools: Any) -> None:
        self.call = calls.call
        self.find_tool = tools
        self.call_id = "run-1"
        self.taken_up: str | None = None

    def remaining(self) -> float:
        return 60.0

    def progress(self, message: str, done: float | None = None, total: float | None = None) -> None:
        """Ignore the progress."""

    async def resume(self, call_id: str) -> None:
        self.taken_up = call_id

    def report_parts(self, parts: object) -> None:
        """Ignore how the parts ended."""


def test_a_file_is_a_tool_with_its_own_schema(tmp_path: Path) -> None:
    """The name comes from the file name; the arguments are the parameters and the options of a run."""
    tool = saved_pipeline(write(tmp_path, "greet.toml", GOOD))
    assert (tool.name, tool.description, tool.timeout_s) == ("greet", "Greet somebody twice.", 65.0)
    schema = tool.info.input_schema
    assert schema["required"] == ["name"]
    assert schema["properties"].keys() == {"name", "greeting", "resume", "on_unknown", "dry_run"}
    assert schema["additionalProperties"] is False
    assert isinstance(tool.arguments, JsonSchema)
    assert tool.orchestration
    assert not tool.repeatable


async def test_the_steps_run_with_the_arguments(tmp_path: Path, calls: Any, tools: Any) -> None:
    """Missing arguments get their default."""
    calls.answers["note"] = lambda arguments: arguments["value"]
    tool = saved_pipeline(write(tmp_path, "greet.toml", GOOD))
    answer = await tool.run(bind(tool, {"name": "Ann"}), Running(calls, tools))  # type: ignore[arg-type]
    assert (answer["result"], answer["success"], answer["run_id"]) == ("Hello Ann!", True, "run-1")
    answer = await tool.run(bind(tool, {"name": "Bob", "greeting": "Bye"}), Running(calls, tools))  # type: ignore[arg-type]
    assert answer["result"] == "Bye Bob!"


async def test_a_dry_run_returns_the_plan(tmp_path: Path, calls: Any, tools: Any) -> None:
    """``dry_run`` is not part of the steps' input."""
    tool = saved_pipeline(write(tmp_path, "greet.toml", GOOD))
    answer = await tool.run(bind(tool, {"name": "Ann", "dry_run": True}), Running(calls, tools))  # type: ignore[arg-type]
    assert (answer["dry_run"], answer["order"]) == (True, [["first"], ["second"]])
    assert calls.made == []


async def test_a_run_can_be_resumed(tmp_path: Path, calls: Any, tools: Any) -> None:
    """``resume`` works as for ``execute_pipeline``."""
    tool = saved_pipeline(write(tmp_path, "greet.toml", GOOD))
    running = Running(calls, tools)
    await tool.run(bind(tool, {"name": "Ann", "resume": "run-0"}), running)  # type: ignore[arg-type]
    assert running.taken_up == "run-0"


@pytest.mark.parametrize("arguments", [{}, {"name": 1}, {"name": "Ann", "nam": "Ann"}])
def test_arguments_are_validated_against_the_parameters(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """Missing, wrong and unknown arguments are rejected."""
    tool = saved_pipeline(write(tmp_path, "greet.toml", GOOD))
    with pytest.raises(InvalidArgumentsError):
        bind(tool, arguments)


@pytest.mark.parametrize("ending", ["yaml", "yml"])
async def test_a_file_can_be_yaml(tmp_path: Path, calls: Any, tools: Any, ending: str) -> None:
    """A YAML file has the same keys as a TOML file."""
    tool = saved_pipeline(write(tmp_path, f"greet.{ending}", YAML))
    calls.answers["note"] = lambda arguments: arguments["value"]
    answer = await tool.run(bind(tool, {"name": "Ann"}), Running(calls, tools))  # type: ignore[arg-type]
    assert answer["result"] == "Ann"


@pytest.mark.parametrize(
    ("name", "text", "reported"),
    [
        ("a b.toml", GOOD, "the file name without its extension is the tool name"),
        ("x.toml", "steps = [", "it is not valid TOML"),
        ("x.yaml", "a: [", "it is not valid YAML"),
        ("x.yaml", "- 1", "it should have description, parameters and steps"),
        ("x.yaml", "[" * 100_000, "it is not valid YAML: it is nested more than 100 levels deep"),
        ("x.yaml", "a: &a [1, 1, 1]\nb:" + "\n- *a" * 3_000, "its aliases expand to more than 10,000 values"),
        ("x.toml", 'description = "x"', "steps is missing"),
        ("x.yaml", "description: x\nsteps: []", "steps should have 1 items or more"),
        ("x.toml", GOOD.replace("tool_name", "tool", 1), "did you mean 'tool_name'?"),
        ("x.toml", GOOD.replace("{{first}}", "{{frist}}"), "there is no step 'frist'; did you mean 'first'?"),
        ("x.toml", GOOD.replace("input.name", "input.nam"), "there is no parameter 'nam'; did you mean 'name'?"),
        ("x.toml", GOOD.replace("{{first}}", "{{second}}"), "second → second"),
        ("x.toml", GOOD.replace('type = "string"', 'type = "text"', 1), "parameters: the schema is not a JSON Schema"),
        (
            "x.toml",
            GOOD.replace("properties.greeting", "properties.resume"),
            "resume is an argument of every saved pipeline",
        ),
    ],
)
def test_an_invalid_file_is_rejected(tmp_path: Path, name: str, text: str, reported: str) -> None:
    """The error names the place and the correction."""
    with pytest.raises(SavedPipelineError) as raised:
        saved_pipeline(write(tmp_path, name, text))
    assert reported in str(raised.value)


def test_a_directory_provides_a_tool_per_file(tmp_path: Path) -> None:
    """An invalid file is skipped and reported; files of other types are ignored."""
    write(tmp_path, "greet.toml", GOOD)
    write(tmp_path, "bad.yaml", "steps: 1")
    write(tmp_path, "notes.txt", "notes")
    tools, problems = pipelines_in(tmp_path)
    assert [tool.name for tool in tools] == ["greet"]
    assert len(problems) == 1
    assert "bad.yaml was skipped: " in problems[0]
    assert "cannot be read" in pipelines_in(tmp_path / "nowhere")[1][0]


def test_a_file_cannot_replace_a_tool(tmp_path: Path) -> None:
    """The registry reports a file whose name is already used by a tool or another pipeline."""
    write(tmp_path, "echo.toml", GOOD)
    write(tmp_path, "greet.toml", GOOD)
    write(tmp_path, "greet.yaml", YAML)
    registry = load_registry(pipeline_dir=tmp_path)
    assert registry.get("greet").description == "Greet somebody twice."
    assert [problem.partition(" of ")[0] for problem in registry.problems] == ["tool 'echo'", "tool 'greet'"]
