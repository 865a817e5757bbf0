"""Loading of workflow files: built-in files, the operator's files, and invalid files."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs
from toold.tools import load_registry
from toold.tools.builtin.workflow import own_workflows, workflows_in
from toold.tools.builtin.workflow.workflow_loader import DefinitionError, read_definition

if TYPE_CHECKING:
    from tests.tools.builtin.workflow.conftest import OpenHarness

PAGE = Path(__file__).parents[4] / "docs" / "writing-a-workflow-tool.md"
GOOD = """
description = "Look at something."
step = "What to look at."
[[guidance]]
text = "Look closer."
[expert]
prompt = "You look at things."
"""


def write(directory: Path, name: str, text: str | bytes = GOOD) -> Path:
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_built_in_workflows_are_loaded() -> None:
    """Each shipped file is a tool."""
    tools = own_workflows()
    assert [tool.name for tool in tools] == [
        "analyze", "codereview", "debug", "docgen", "planner", "precommit",
        "refactor", "secaudit", "testgen", "thinkdeep", "tracer",
    ]  # fmt: skip
    assert {(tool.timeout_s, tool.repeatable, tool.local) for tool in tools} == {(330.0, True, False)}


def test_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    """The example in docs/writing-a-workflow-tool.md is a valid definition."""
    example = re.findall(r"```toml\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    definition = read_definition(write(tmp_path, "migration.toml", example))
    assert definition.name == "migration"
    assert definition.arguments["database"].required_on == 1
    assert "\n" not in definition.expert.prompt


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff", "the file is not UTF-8 text"),
        ("step = ", "the file is not valid TOML: Invalid value (at"),
        ("a = " + "[" * 10_000, "the file is not valid TOML: "),
        ('name = "x"' + GOOD, "name: omit it; the file name is the tool's name"),
        ('descripton = "x"' + GOOD, "descripton: unknown key; did you mean 'description'?"),
        (
            "zzz = 1" + GOOD,
            "zzz: unknown key; known keys: description, step, deadline_s, arguments, ignored_arguments",
        ),
        (GOOD.replace('step = "What to look at."', ""), "step: is missing"),
        (GOOD.replace('step = "What to look at."', "step = 1"), "step: must be text"),
        (GOOD.replace('step = "What to look at."', 'step = ""'), "step: must not be empty"),
        (GOOD + 'promt = "x"', "expert.promt: unknown key; did you mean 'prompt'?"),
        (GOOD + 'by_default = "yes"', "expert.by_default: must be true or false"),
        (GOOD + '[[guidance]]\ntext = "x"\nstep = "1"', "guidance.1.step: must be a whole number"),
        (
            GOOD + '[[guidance]]\ntext = "x"\nconfidence = ["hihg"]',
            "high, very_high, almost_certain, certain; did you mean 'high'?",
        ),
        (
            GOOD + '[arguments.mode]\ntype = "text"\ndescription = "x"',
            "arguments.mode.type: must be one of string, strings, files, integer, number, boolean",
        ),
        (
            GOOD + '[arguments.mode]\ntype = "string"\ndescription = "x"\ndefault = "y"\nchoices = ["z"]',
            "arguments.mode: default: must be one of the choices, z",
        ),
        (
            GOOD + '[arguments.mode]\ntype = "string"\ndescription = "x"\nrequired = 1',
            "arguments.mode.required: unknown key; did you mean 'required_on'?",
        ),
        (
            GOOD + '[result.tests]\ntype = "objects"\ndescription = "x"\nfields.a = {type = "string"}',
            "result.tests.fields.a.description: is missing",
        ),
        (GOOD + '[[expected]]\nfield = "x"\ntext = "y"', "expected.0.field: there is no argument 'x'"),
        (GOOD.replace("[[guidance]]", "[guidance]"), "guidance: must be a list"),
        (GOOD + "\n".join(f"z{n} = 1" for n in range(7)), "; and 2 more"),
    ],
)
def test_invalid_file_error_names_the_key(tmp_path: Path, text: str | bytes, says: str) -> None:
    """The error names the key and the valid values, and suggests a correction."""
    with pytest.raises(DefinitionError) as caught:
        read_definition(write(tmp_path, "mine.toml", text))
    assert says in str(caught.value)


def test_the_file_name_must_be_a_valid_tool_name(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="the file name is the tool's name"):
        read_definition(write(tmp_path, "my tool.toml"))


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    """A directory whose name ends in .toml cannot be read as a definition."""
    (tmp_path / "mine.toml").mkdir()
    with pytest.raises(DefinitionError, match=r"the file cannot be read \(Is a directory\)"):
        read_definition(tmp_path / "mine.toml")


def test_an_invalid_file_does_not_affect_others(tmp_path: Path) -> None:
    """The valid file becomes a tool, the invalid one a problem; other files are ignored."""
    good, bad = write(tmp_path, "inspect.toml"), write(tmp_path, "bad.toml", GOOD + "x = 1")
    write(tmp_path, "README.md", "about these files")
    tools, problems = workflows_in(tmp_path)
    assert [(tool.name, tool.source) for tool in tools] == [("inspect", str(good))]
    assert problems == [
        f"workflow tool {bad} was not loaded: expert.x: unknown key; known keys: prompt, by_default, skip_when_certain"
    ]


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    """The daemon starts without its tools."""
    tools, (problem,) = workflows_in(tmp_path / "gone")
    assert tools == []
    assert "the directory cannot be read (No such file or directory)" in problem


def test_built_in_tools_cannot_be_replaced(tmp_path: Path) -> None:
    """A file with the name of another tool is skipped. The log and the registry report it."""
    path = write(tmp_path, "codereview.toml")
    with capture_logs() as logs:
        registry = load_registry(workflow_dir=tmp_path)
    assert registry.problems == (f"tool 'codereview' of {path} was skipped: toold has a tool with that name",)
    assert registry.get("codereview").source == "toold"
    assert [line["event"] for line in logs] == ["tool skipped"]


async def test_operator_defined_tool_works_like_a_built_in_one(open_harness: "OpenHarness", tmp_path: Path) -> None:
    """The tool is listed, can be called in steps, and returns its own result. Health names the invalid file."""
    directory = tmp_path / "workflows"
    directory.mkdir()
    own = '[result.colour]\ntype = "string"\ndescription = "Its colour."'
    write(directory, "inspect.toml", GOOD + own)
    write(directory, "bad.toml", "nonsense")
    harness = await open_harness(TOOLD_WORKFLOW_DIR=str(directory))
    assert "inspect" in [tool.name for tool in await harness.client.list_tools()]
    first = await harness.step("inspect", "Look.", total_steps=2)
    assert (first["next"], harness.request_count) == (["Look closer."], 0)
    last = await harness.step("inspect", "Looked.", continuation_id=first["continuation_id"])
    assert (last["colour"], harness.request_count) == ("Simulated colour", 1)
    (problem,) = (await harness.client.health())["problems"]
    assert "bad.toml was not loaded: the file is not valid TOML" in problem
