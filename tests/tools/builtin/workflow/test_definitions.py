"""The words of the daemon's own workflow tools: short enough to be listed, whole, and described in the documents."""

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
def test_the_listing_is_short(definition: WorkflowDefinition) -> None:
    """Whoever connects pays for every word of it."""
    assert len(definition.description.split()) <= MAX_DESCRIPTION_WORDS
    for name, schema in workflow_tool(definition).info.input_schema["properties"].items():
        assert len(schema["description"].split()) <= MAX_ARGUMENT_WORDS, name


@each
def test_guidance_is_short_and_each_is_said_once(definition: WorkflowDefinition) -> None:
    """A caller reads it between two steps."""
    said = [rule.text for rule in definition.guidance]
    assert len(set(said)) == len(said)
    assert max(len(say.split()) for say in said) <= MAX_GUIDANCE_WORDS


@each
def test_sentences_are_whole(definition: WorkflowDefinition) -> None:
    """They begin with a capital letter, end with a mark, and have no line ends, blanks or quotation marks astray."""
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
def test_there_is_something_to_look_at_after_every_step(definition: WorkflowDefinition, number: int) -> None:
    """However many steps a caller takes, none is answered with nothing, nor with a flood."""
    run = WorkflowRun(steps=(WorkflowStep(number, "look"),), total=9)
    assert 1 <= len(suggestions(definition, run, number)) <= 5


@each
def test_what_is_its_own_is_described(definition: WorkflowDefinition) -> None:
    """docs/tools.md has each argument with its choices, and each field of the result, in the tool's section."""
    section = PAGE.partition(f"\n## {definition.name}\n")[2].partition("\n## ")[0]
    for name, argument in definition.arguments.items():
        (row,) = (line for line in section.splitlines() if line.startswith(f"| `{name}` |"))
        assert [choice for choice in argument.choices if f"`{choice}`" not in row] == []
    for name, field in definition.result.items():
        named = [name, *field.choices, *field.fields]
        assert [word for word in named if f"`{word}`" not in section] == []


@each
def test_a_result_is_one_that_can_be_told_apart(definition: WorkflowDefinition) -> None:
    """Beside summary and findings each tool has something of its own that must be there."""
    fields = result_fields(definition)
    assert list(fields)[:2] == ["summary", "findings"]
    assert any(not field.optional for field in definition.result.values())
