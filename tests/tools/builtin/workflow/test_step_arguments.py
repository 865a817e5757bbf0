"""The arguments of a workflow tool: schema, accepted values and errors."""

from collections.abc import Callable
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import Tool, bind
from toold.tools.argument_binding import AdaptedValues, bind_arguments
from toold.tools.builtin.workflow.step_arguments import StepArguments, report_of
from toold.tools.builtin.workflow.step_engine import StepReport
from toold.tools.builtin.workflow.workflow_definition import STEP_ARGUMENTS, WorkflowDefinition
from toold.tools.builtin.workflow.workflow_run import WorkflowIssue, WorkflowStep
from toold.tools.builtin.workflow.workflow_tool import workflow_tool

Define = Callable[..., WorkflowDefinition]
OWN: dict[str, Any] = {
    "mode": {"type": "string", "description": "How.", "choices": ["deep", "wide"], "default": "wide"},
    "areas": {"type": "strings", "description": "Where."},
    "depth": {"type": "integer", "description": "How deep.", "per_step": True},
    "share": {"type": "number", "description": "How much."},
    "strict": {"type": "boolean", "description": "Whether."},
}


def bound(tool: Tool, **arguments: Any) -> StepArguments:
    model = bind(tool, {"step": "Look.", **arguments})
    assert isinstance(model, StepArguments)
    return model


def reported(definition: WorkflowDefinition, number: int = 1, **arguments: Any) -> StepReport:
    return report_of(definition, bound(workflow_tool(definition), **arguments), number)


def test_schema_is_minimal(define: Define) -> None:
    """The schema has types, choices and the required argument, but no titles, nulls or default values that are null."""
    schema = workflow_tool(define(arguments=OWN)).info.input_schema
    assert set(schema["properties"]) == (STEP_ARGUMENTS - {"prompt"}) | set(OWN)
    assert schema["required"] == ["step"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["step"]["description"] == "What to look at."
    assert schema["properties"]["mode"] == {
        "description": "How.", "enum": ["deep", "wide"], "default": "wide", "type": "string"
    }  # fmt: skip
    assert schema["properties"]["areas"] == {"description": "Where.", "items": {"type": "string"}, "type": "array"}
    assert schema["properties"]["depth"] == {"description": "How deep.", "type": "integer"}
    assert schema["properties"]["share"]["type"] == "number"
    assert schema["properties"]["strict"]["type"] == "boolean"
    for word in ("null", "anyOf", "title"):
        assert f"'{word}'" not in str(schema)


def test_schema_states_whether_the_expert_is_asked_by_default(define: Define) -> None:
    """The default is part of the definition."""
    for by_default, says in ((True, "Default: true."), (False, "Default: false.")):
        tool = workflow_tool(define(expert={"prompt": "Look.", "by_default": by_default}))
        asks = tool.info.input_schema["properties"]["use_assistant_model"]["description"]
        assert asks == f"Ask the expert in the last step. {says}"


def test_prompt_is_an_alias_of_step(define: Define) -> None:
    arguments = bind(workflow_tool(define()), {"prompt": "Look."})
    assert isinstance(arguments, StepArguments)
    assert arguments.step == "Look."


def test_null_equals_omission(define: Define) -> None:
    """Some clients send every argument, with null for the unused ones."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("confidence", "hypothesis", "continuation_id", "model", "depth", "share", "strict")
    )
    assert reported(define(arguments=OWN), **nothing) == StepReport(WorkflowStep(1, "Look."))


def test_arguments_are_converted_to_a_report(define: Define) -> None:
    """Findings, files, issues and per-step arguments belong to the step. The other values carry over to later steps."""
    report = reported(
        define(arguments=OWN),
        3,
        total_steps=4,
        next_step_required=True,
        findings="It leaks.",
        files_checked=["a.py"],
        relevant_files=["b.py"],
        issues_found=[{"severity": "high", "description": "leak", "file": "b.py", "line": 3}],
        confidence="high",
        hypothesis="No close.",
        continuation_id="thread-1",
        model="auto",
        use_assistant_model=False,
        mode="deep",
        areas=["x"],
        depth=2,
        strict=False,
    )
    step = WorkflowStep(
        3, "Look.", "It leaks.", ("a.py",), ("b.py",), (WorkflowIssue("high", "leak", "b.py", 3),), {"depth": 2}
    )
    reply = {"confidence": "high", "hypothesis": "No close.", "model": "auto", "use_assistant_model": False}
    own = {"mode": "deep", "areas": ["x"], "strict": False}
    assert report == StepReport(step, total=4, more=True, values=reply | own)


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ({"confidence": "Very High"}, {"confidence": "very_high"}),
        ({"confidence": "complete"}, {"confidence": "certain"}),
        ({"confidence": "planning"}, {"confidence": "exploring"}),
        ({"thinking_mode": "max", "use_websearch": True}, {"thinking": "max", "web_search": True}),
        ({"files": "a.py"}, {"relevant_files": ["a.py"]}),
        ({"absolute_file_paths": ["a.py"], "images": None}, {"relevant_files": ["a.py"]}),
        ({"issues_found": ["leak"]}, {"issues_found": [{"description": "leak"}]}),
        (
            {"issues_found": '[{"severity": "HIGH", "issue": "leak", "line": "3", "location": "f()"}]'},
            {
                "issues_found": [
                    {"severity": "high", "description": "leak", "line": 3, "issue": "leak", "location": "f()"}
                ]
            },
        ),
        (
            {"issues_found": [{"severity": "minor", "description": "x", "line": "3-5", "file": None}]},
            {"issues_found": [{"severity": "low", "description": "x", "lines": "3-5"}]},
        ),
        (
            {"issues_found": [{"severity": "P1", "where": "b.py"}]},
            {"issues_found": [
                {"rating": "p1", "description": '{"severity": "P1", "where": "b.py"}', "where": "b.py"}
            ]},
        ),
        ({"way": "deep"}, {"mode": "deep"}),
        ({"kind": "internal", "use_assistant_model": True}, {"use_assistant_model": False}),
        ({"kind": "external"}, {}),
        ({"flag": True}, {}),
    ],
)  # fmt: skip
def test_former_forms_mean_the_same(define: Define, former: dict[str, Any], now: dict[str, Any]) -> None:
    """Words, names and issues of earlier servers are taken as their current form, with a notice."""
    definition = define(
        arguments=OWN | {"mode": OWN["mode"] | {"former_names": ["way"]}},
        ignored_arguments={"flag": "it has no meaning"},
        former_arguments={
            "kind": {"now": "use_assistant_model", "values": {"internal": False}, "default": ["external"]}
        },
    )
    tool = workflow_tool(definition)
    adapted = bind_arguments(tool, {"step": "Look.", **former})
    assert isinstance(adapted, AdaptedValues)
    assert adapted.values == bound(tool, **now)


def test_a_changed_default_has_a_notice(define: Define) -> None:
    """Only if the argument is not sent; a definition can only name its arguments."""
    tool = workflow_tool(define(former_defaults={"web_search": "it was on"}))
    for sent, expected in (({}, ("web_search: it was on.",)), ({"web_search": True}, ())):
        adapted = bind_arguments(tool, {"step": "Look.", "thinking_mode": "low", **sent})
        assert isinstance(adapted, AdaptedValues)
        assert adapted.notices[1:] == expected
    with pytest.raises(ValueError, match=r"former_defaults\.x: there is no argument 'x'"):
        define(former_defaults={"x": "it was on"})


def test_images_in_the_call_itself_are_not_stored(define: Define) -> None:
    """The report has paths and URLs of images only; a data: URL would fill the conversation's state."""
    report = reported(define(), images=["a.png", "data:image/png;base64,AA", "https://x.example/b.png"])
    assert report.step.images == ("a.png", "https://x.example/b.png")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"step": ""}, "step should have at least 1 character"),
    ({"step": None}, "step should be a string, not null"),
    ({"step": 1}, "step should be a string, not 1"),
    ({"step_number": 0}, "step_number should be greater than or equal to 1, not 0"),
    ({"step_number": "one"}, 'step_number should be an integer, not "one"'),
    ({"step_number": 1001}, "step_number should be less than or equal to 1000, not 1001"),
    ({"total_steps": 1001}, "total_steps should be less than or equal to 1000, not 1001"),
    ({"total_steps": 0}, "total_steps should be greater than or equal to 1, not 0"),
    ({"total_steps": 1.5}, "total_steps should be"),
    ({"next_step_required": "yes"}, 'next_step_required should be true or false, not "yes"'),
    ({"findings": ["a"]}, "findings should be a string, not an array"),
    ({"files_checked": 7}, "files_checked should be an array, not 7"),
    ({"relevant_files": 7}, "relevant_files should be an array, not 7"),
    ({"relevant_files": ["a"] * 65}, "relevant_files should have at most 64 items"),
    ({"relevant_files": [1]}, "relevant_files.0 should be a string, not 1"),
    ({"issues_found": [3]}, "issues_found.0 should be an object"),
    ({"issues_found": [{}]}, "issues_found.0.description is missing"),
    ({"issues_found": [{"severity": 1, "description": "x"}]}, "issues_found.0.severity should be 'critical'"),
    ({"images": ["a.png"] * 17}, "images should have at most 16 items"),
    ({"backtrack_from_step": 0}, "backtrack_from_step should be greater than or equal to 1, not 0"),
    ({"thinking": "deep"}, "thinking should be"),
    ({"temperature": 2}, "temperature should be less than or equal to 1, not 2"),
    ({"issues_found": [{"severity": "low", "description": "x", "line": 0}]}, "issues_found.0.line should be greater"),
    ({"confidence": "sure"}, "confidence should be 'exploring', 'low'"),
    ({"hypothesis": 1}, "hypothesis should be a string, not 1"),
    ({"continuation_id": 1}, "continuation_id should be a string, not 1"),
    ({"model": 1}, "model should be a string, not 1"),
    ({"use_assistant_model": 1}, "use_assistant_model should be true or false, not 1"),
    ({"hypotesis": "x"}, "hypotesis is not an argument; did you mean 'hypothesis'"),
    ({"prompt": "x"}, "prompt is not an argument"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_arguments_are_rejected(define: Define, arguments: dict[str, Any], message: str) -> None:
    """The error names the tool, the field and what was expected; ``test_every_tool.py`` has a test per tool."""
    with pytest.raises(InvalidArgumentsError) as caught:
        bound(workflow_tool(define()), **arguments)
    assert message in caught.value.message
    assert caught.value.message.startswith("inspect: ")


@pytest.mark.parametrize("name", OWN)
def test_wrong_own_arguments_are_rejected(define: Define, name: str) -> None:
    """An argument from a definition rejects an object, and with choices any other text."""
    tool = workflow_tool(define(arguments=OWN))
    with pytest.raises(InvalidArgumentsError, match=f"{tool.name}: {name} "):
        bound(tool, **{name: {}})
    if "choices" in OWN[name]:
        with pytest.raises(InvalidArgumentsError, match=f"{name} should be .* or '.*', not \"neither\""):
            bound(tool, **{name: "neither"})
