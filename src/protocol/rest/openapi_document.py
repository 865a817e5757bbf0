"""The OpenAPI 3.1 document of a toolset: one path per tool. Pure.

https://spec.openapis.org/oas/v3.1.1.html. Each tool's schemas are components, so that references within them can be
rewritten to their place in the document.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ...version import __version__
from ..error_codes import ErrorCode
from ..tool_call import ToolInfo
from .rest_answer import METADATA_HEADER, STATUS_OF_CODE

_SUMMARY_CHARS: Final = 120
_HOLDING_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords whose value is an object of named schemas."""
_HOLDING_DATA: Final = frozenset({"const", "default", "enum", "examples", "example", "required"})
"""Keywords whose value is data, even if it looks like a schema."""

_PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"enum": [code.value for code in ErrorCode]},
                "message": {"type": "string"},
                "executed": {"enum": ["no", "maybe", "yes"], "description": "Whether the call had an effect."},
                "retryable": {"type": "boolean"},
                "retry_after_ms": {"type": "integer"},
                "details": {"type": "object"},
            },
            "required": ["code", "message", "executed", "retryable"],
        }
    },
    "required": ["error"],
}
_PARAMETERS: Final[list[dict[str, Any]]] = [
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The request id: a repeat of the request joins the call or gets its stored answer.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 512},
    },
    {
        "name": "timeout_ms",
        "in": "query",
        "description": "The call's total time, in milliseconds.",
        "schema": {"type": "number", "exclusiveMinimum": 0},
    },
]


def openapi_document(tools: Iterable[ToolInfo], *, toolset: str, server: str) -> bytes:
    """The document of a toolset's tools as JSON; ``server`` is the base URL of the paths."""
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    paths: dict[str, Any] = {}
    for tool in tools:
        schemas[f"{tool.name}.arguments"] = _placed(tool.input_schema, f"{tool.name}.arguments")
        if tool.output_schema is not msgspec.UNSET:
            schemas[f"{tool.name}.result"] = _placed(tool.output_schema, f"{tool.name}.result")
        paths[f"/tools/{tool.name}"] = {"post": _operation(tool)}
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": f"toold: {toolset}",
                "version": __version__,
                "description": "Tool calls: the request body contains the arguments, the response the result.",
            },
            "servers": [{"url": server}],
            "security": [{"bearer": []}],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "parameters": {each["name"]: each for each in _PARAMETERS},
                "responses": {"Problem": _problem_response()},
                "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            },
        }
    )


def _operation(tool: ToolInfo) -> dict[str, Any]:
    """The operation of one tool. Programs that show operations as functions name them by ``operationId``."""
    result = {} if tool.output_schema is msgspec.UNSET else {"$ref": f"#/components/schemas/{tool.name}.result"}
    arguments = {"$ref": f"#/components/schemas/{tool.name}.arguments"}
    return {
        "operationId": tool.name,
        "summary": _summary(tool.description),
        "description": tool.description,
        "parameters": [{"$ref": f"#/components/parameters/{each['name']}"} for each in _PARAMETERS],
        "requestBody": {
            "required": bool(tool.input_schema.get("required")),
            "content": {"application/json": {"schema": arguments}},
        },
        "responses": {
            "200": {
                "description": "The tool's data, or its text if it returns no data.",
                "headers": {
                    METADATA_HEADER: {"description": "The call's metadata, as JSON.", "schema": {"type": "string"}}
                },
                "content": {"application/json": {"schema": result}},
            },
            "default": {"$ref": "#/components/responses/Problem"},
        },
        "x-toold-annotations": msgspec.to_builtins(tool.annotations),
    }


def _problem_response() -> dict[str, Any]:
    codes: dict[int, list[str]] = {}
    for code, status in STATUS_OF_CODE.items():
        codes.setdefault(status, []).append(str(code))
    meanings = "; ".join(f"{status}: {', '.join(names)}" for status, names in sorted(codes.items()))
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": f"An error. {meanings}.", "content": {"application/json": {"schema": schema}}}


def _summary(description: str) -> str:
    """The first line of a description, as a title."""
    line = description.strip().partition("\n")[0]
    return line if len(line) <= _SUMMARY_CHARS else f"{line[: _SUMMARY_CHARS - 1]}…"


def _placed(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The schema as the component ``name``, in the dialect of OpenAPI 3.1 (JSON Schema 2020-12)."""
    whole = {keyword: value for keyword, value in schema.items() if keyword not in {"$id", "$schema"}}
    moved: dict[str, Any] = _moved(whole, _Move(f"#/components/schemas/{name}", schema.get("$id")))
    return moved


class _Move(NamedTuple):
    """The place of a schema in the document, and its id."""

    place: str
    own_id: Any

    def reference(self, target: Any) -> Any:
        """Adjusts a reference within the schema. Other values stay unchanged."""
        if not isinstance(target, str):
            return target
        local = target.removeprefix(self.own_id) if isinstance(self.own_id, str) else target
        return self.place + local[1:] if local in {"", "#"} or local.startswith("#/") else target


def _moved(part: Any, move: _Move) -> Any:
    """Adjusts a schema, or a list of schemas, that was moved."""
    if isinstance(part, list):
        return [_moved(item, move) for item in part]
    if not isinstance(part, dict):
        return part
    moved: dict[str, Any] = {}
    for keyword, value in part.items():
        if keyword in _HOLDING_DATA:
            moved[keyword] = value
        elif keyword in _HOLDING_NAMED and isinstance(value, dict):
            moved[keyword] = {name: _moved(child, move) for name, child in value.items()}
        else:
            moved[keyword] = _moved(value, move)
    if "$ref" in part:
        moved["$ref"] = move.reference(part["$ref"])
    discriminator = part.get("discriminator")
    if isinstance(discriminator, dict) and isinstance(discriminator.get("mapping"), dict):  # in pydantic's form
        mapping = {value: move.reference(target) for value, target in discriminator["mapping"].items()}
        moved["discriminator"] = {**discriminator, "mapping": mapping}
    _modernize(moved)
    return moved


def _modernize(schema: dict[str, Any]) -> None:
    """Replaces keywords of earlier drafts that 2020-12 forbids, because one such schema makes the whole document
    invalid. Also removes a default of another type than the schema's, which some validators reject.
    """
    if isinstance(schema.get("items"), list):
        first, rest = schema["items"], schema.pop("additionalItems", True)
        schema["items"] = rest
        if first:
            schema["prefixItems"] = first
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    kinds = schema.get("type")
    named = [kinds] if isinstance(kinds, str) else kinds
    if "default" in schema and isinstance(named, list) and _type_of(schema["default"]).isdisjoint(map(str, named)):
        del schema["default"]


def _type_of(value: Any) -> set[str]:
    """The JSON types of a value."""
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number", "integer"} if value.is_integer() else {"number"}
        case str():
            return {"string"}
        case list():
            return {"array"}
    return {"object"}
