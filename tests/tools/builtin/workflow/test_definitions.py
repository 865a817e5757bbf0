"""The texts of the built-in workflow tools: length, form and documentation."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from toold.tools.builtin.workflow.step_guidance import suggestions
from toold.tools.builtin.workflow.workflow_definition import ResultField, WorkflowDefinition
from toold.tools.builtin.workflow.workflow_loader import read_definition
from toold.tools.builtin.workflow.workflow_result import result_fields
from toold.tools.builtin.workflow.workflow_run import WorkflowRun, WorkflowStep
from toold.tools.builtin.workflow.workflow_tool import workflow_tool

PAGE = (Path(__file__).parents[4] / "docs" / "tools.md").read_text(encoding="utf-8")
DEFINITIONS = [read_definition(file) for file in (files("toold.tools.builtin.workflow") / "definitions").iterdir()]
MAX_DESCRIPTION_WORDS = 60
MAX_ARGUMENT_WORDS = 15
MAX_GUIDANCE_WORDS = 30

each = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)


def described(fields: dict[str, ResultField]) -> Iterator[str]:
    for field in fields.values():
        yield field.description
        yield from described(field.fields)


@each
def test_descriptions_are_short(definition: WorkflowDefinition) -> None:
    """Every client receives the descriptions of the tool and its arguments, so their length is limited."""
    assert len(definition.description.split()) <= MAX_DESCRIPTION_WORDS
    for name, schema in workflow_tool(definition).info.input_schema["properties"].items():
        assert len(schema["description"].split()) <= MAX_ARGUMENT_WORDS, name


@each
def test_guidance_is_short_and_unique(definition: WorkflowDefinition) -> None:
    """Each guidance text is short and occurs once."""
    texts = [rule.text for rule in definition.guidance]
    assert len(set(texts)) == len(texts)
    assert max(len(say.split()) for say in texts) <= MAX_GUIDANCE_WORDS


@each
def test_texts_are_complete_sentences(definition: WorkflowDefinition) -> None:
    """A text begins with a capital letter, ends with a period or question mark, and has no superfluous white space."""
    texts = [definition.description, definition.step, definition.expert.prompt]
    texts += [rule.text for rule in definition.guidance]
    texts += [own.description for own in definition.arguments.values()]
    texts += described(definition.result)
    for text in texts:
        assert text == " ".join(text.split()), text
        assert text[0].isupper(), text
        assert text[-1] in ".?", text


@each
@pytest.mark.parametrize("number", range(1, 7))
def test_every_step_has_one_to_five_suggestions(definition: WorkflowDefinition, number: int) -> None:
    """Each step has at least one suggestion and at most five."""
    run = WorkflowRun(steps=(WorkflowStep(number, "look"),), total=9)
    assert 1 <= len(suggestions(definition, run, number)) <= 5


@each
def test_own_arguments_and_fields_are_documented(definition: WorkflowDefinition) -> None:
    """The tool's section of docs/tools.md has each argument with its choices, and each field of the result."""
    section = PAGE.partition(f"\n## {definition.name}\n")[2].partition("\n## ")[0]
    for name, argument in definition.arguments.items():
        (row,) = (line for line in section.splitlines() if line.startswith(f"| `{name}` |"))
        assert [choice for choice in argument.choices if f"`{choice}`" not in row] == []
    for name, field in definition.result.items():
        named = [name, *field.choices, *field.fields]
        assert [word for word in named if f"`{word}`" not in section] == []


@each
def test_each_tool_has_its_own_required_result_field(definition: WorkflowDefinition) -> None:
    """Besides summary and findings, each tool has at least one required field."""
    fields = result_fields(definition)
    assert list(fields)[:2] == ["summary", "findings"]
    assert any(not field.optional for field in definition.result.values())
