"""The result of a workflow: its JSON Schema, parsing a model's answer, and its form as text. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, create_model

from ....protocol.json_text import parse_json
from .workflow_definition import ResultField, Severity, WorkflowDefinition

_FINDING: Final[Mapping[str, ResultField]] = {
    "severity": ResultField(type="string", choices=list(get_args(Severity)), description="The severity."),
    "title": ResultField(type="string", description="The finding in one line."),
    "file": ResultField(type="string", optional=True, description="The file, as named in the question."),
    "line": ResultField(type="integer", optional=True, description="The line number."),
    "explanation": ResultField(type="string", description="The cause and the consequences."),
    "fix": ResultField(type="string", optional=True, description="The fix, with code if that helps."),
}
COMMON: Final[Mapping[str, ResultField]] = {
    "summary": ResultField(type="string", description="The answer to the task, in a few sentences."),
    "findings": ResultField(
        type="objects",
        fields=dict(_FINDING),
        description="The findings, most important first; an empty array if there are none.",
    ),
}
"""The fields of every result."""


@dataclass(frozen=True, slots=True)
class Unstructured:
    """An answer that does not fit the schema."""

    reason: str


class _Result(BaseModel):
    """The base of result models. Ignores unknown fields and accepts numbers in quotation marks."""

    model_config = ConfigDict(extra="ignore")


def result_fields(definition: WorkflowDefinition) -> Mapping[str, ResultField]:
    return {**COMMON, **definition.result}


def result_schema(fields: Mapping[str, ResultField]) -> dict[str, Any]:
    """Returns the JSON Schema of an object with these fields. Vendors require a type for each value, and do not allow
    references.
    """
    return {
        "type": "object",
        "properties": {name: _property(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if not field.optional],
        "additionalProperties": False,
    }


def parse_result(fields: Mapping[str, ResultField], text: str) -> dict[str, Any] | Unstructured:
    """Parses these fields from a model's answer. Ignores text around the JSON, such as a code fence."""
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return Unstructured("the answer has no JSON object")
    try:
        document = parse_json(text[start : end + 1])
        return _model(fields).model_validate(document).model_dump(exclude_none=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, wrong["loc"]))
        return Unstructured(f"the answer does not fit the schema: {place or 'the answer'}: {wrong['msg']}")
    except ValueError as error:
        return Unstructured(f"the answer is not JSON: {error}")


def result_text(fields: Mapping[str, ResultField], result: Mapping[str, Any]) -> str:
    """Returns a result as text: the summary, the findings, then the other fields by name."""
    parts = [str(result["summary"]), _findings(result["findings"])]
    parts += [
        _part(name, value)
        for name, value in result.items()
        if name in fields and name not in COMMON and value not in ("", [])
    ]
    return "\n\n".join(parts)


def _property(field: ResultField) -> dict[str, Any]:
    description = {"description": field.description}
    match field.type:
        case "objects":
            return {"type": "array", "items": result_schema(field.fields)} | description
        case "strings":
            return {"type": "array", "items": _text(field)} | description
        case "string":
            return _text(field) | description
        case kind:
            return {"type": kind} | description


def _text(field: ResultField) -> dict[str, Any]:
    return {"type": "string", "enum": field.choices} if field.choices else {"type": "string"}


def _model(fields: Mapping[str, ResultField]) -> type[BaseModel]:
    model_fields: dict[str, Any] = {}
    for name, field in fields.items():
        kind = _kind(field)
        model_fields[name] = (kind | None, None) if field.optional else (kind, ...)
    return create_model("Result", __base__=_Result, **model_fields)


def _kind(field: ResultField) -> Any:
    text: Any = str
    if field.choices:
        text = Annotated[Literal[tuple(field.choices)], BeforeValidator(_match_case(field.choices))]
    kinds: dict[str, Any] = {
        "string": text,
        "strings": list[text],
        "integer": Annotated[int, BeforeValidator(_first_number)],
        "number": float,
        "boolean": bool,
    }
    return list[_model(field.fields)] if field.type == "objects" else kinds[field.type]  # type: ignore[misc] # made at run time


def _match_case(choices: list[str]) -> Any:
    """Accepts the choices in upper and lower case, because models write ``High`` for ``high``."""
    by_lower = {choice.lower(): choice for choice in choices}
    return lambda value: by_lower.get(value.strip().lower(), value) if isinstance(value, str) else value


def _first_number(value: object) -> object:
    """Takes the first number, because models without schema support write ``12-15`` for a line number."""
    match = re.match(r"\D{0,8}(\d{1,9})", value) if isinstance(value, str) else None
    return int(match[1]) if match else value


def _findings(findings: list[dict[str, Any]]) -> str:
    if not findings:
        return "No findings."
    return "\n".join(line for number, finding in enumerate(findings, 1) for line in _finding(number, finding))


def _finding(number: int, finding: Mapping[str, Any]) -> Iterator[str]:
    place = str(finding.get("file", ""))
    if place and "line" in finding:
        place += f":{finding['line']}"
    severity = f"[{finding['severity']}] " if "severity" in finding else ""
    yield f"{number}. {severity}{finding['title']}{f' ({place})' if place else ''}"
    if explanation := finding.get("explanation"):
        yield _indented(explanation)
    if fix := finding.get("fix"):
        yield _indented(f"Fix: {fix}")


def _part(name: str, value: Any) -> str:
    title = name.replace("_", " ").capitalize()
    if not isinstance(value, list):
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        return f"{title}:\n{shown}" if "\n" in shown else f"{title}: {shown}"
    return "\n".join([f"{title}:", *(_item(number, item) for number, item in enumerate(value, 1))])


def _item(number: int, item: Any) -> str:
    if not isinstance(item, dict):
        return f"- {item}"
    (_, first), *others = item.items()
    lines = [_indented(_part(name, value)) for name, value in others if value not in ("", [])]
    return "\n".join([f"{number}. {first}", *lines])


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())
