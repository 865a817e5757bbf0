"""The parameters of operations."""

from typing import Any

import pytest


def parameter(**fields: Any) -> dict[str, Any]:
    return {"name": "q", "in": "query", "schema": {"type": "string"}} | fields


def test_an_operations_parameter_overrides_that_of_its_path(read_paths: Any) -> None:
    """By name and place; the path's other parameters stay."""
    api = read_paths(
        {
            "/x": {
                "parameters": [parameter(), parameter(name="p")],
                "get": {"operationId": "x", "parameters": [parameter(schema={"type": "integer"})]},
            }
        }
    )
    assert api.operations[0].arguments.schema["properties"] == {"q": {"type": "integer"}, "p": {"type": "string"}}


def test_equal_names_are_prefixed_by_their_place(read_one: Any) -> None:
    """The path parameter keeps the name; body fields come last."""
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": {"id": {"type": "boolean"}}}}}}
    operation = read_one(
        {
            "parameters": [
                parameter(name="id", schema={"type": "number"}),
                parameter(name="id", **{"in": "header"}),
                parameter(name="id", **{"in": "path"}, required=True, schema={"type": "integer"}),
                parameter(name="id", **{"in": "cookie"}),
            ],
            "requestBody": body,
        },
        path="/x/{id}",
    )
    assert {name: part["type"] for name, part in operation.arguments.schema["properties"].items()} == {
        "id": "integer",
        "query_id": "number",
        "header_id": "string",
        "cookie_id": "string",
        "body_id": "boolean",
    }
    assert operation.arguments.schema["required"] == ["id"]


@pytest.mark.parametrize(
    ("declared", "arguments", "note"),
    [
        ([parameter(name=7)], {}, "a parameter without a name was omitted"),
        ([parameter(**{"in": "body"})], {}, "the parameter 'q' is in 'body', which is not a valid location; omitted"),
        ([parameter(**{"in": ["query"]})], {}, "which is not a valid location; omitted"),
        (["q"], {}, "a parameter without a name was omitted"),
        ("q", {}, "parameters is not a list; omitted"),
        ([{"$ref": "#/components/parameters/Gone"}], {}, "a parameter was omitted: #/components/parameters/Gone"),
        ([parameter(name="a b", **{"in": "header"})], {}, "the parameter 'a b' is not a valid header name; omitted"),
        ([parameter(**{"in": "path"})], {}, "the path has no placeholder for the parameter 'q'; omitted"),
        ([{"name": "q", "in": "query"}], {"q": {"type": "string"}}, "has no schema; treated as a string"),
        ([{"name": "q", "in": "query", "type": "integer"}], {"q": {"type": "integer"}}, "treated as declared"),
        ([parameter(style="fancy")], {"q": {"type": "string"}}, "the style of 'q' is 'fancy'; read as form"),
    ],
)
def test_an_invalid_parameter_is_noted(declared: Any, arguments: Any, note: str, read_paths: Any) -> None:
    """The operation stays, with its valid parameters."""
    api = read_paths({"/x": {"get": {"operationId": "x", "parameters": declared}}})
    assert api.operations[0].arguments.schema["properties"] == arguments
    assert [one.kind for one in api.notes] == ["repaired"]
    assert note in api.notes[0].what


def test_reserved_headers_are_no_arguments(read_one: Any) -> None:
    """Neither that of the secret, nor those that HTTP sets."""
    names = ("Authorization", "content-type", "Accept", "Host", "Content-Length", "Transfer-Encoding", "X-Mine")
    operation = read_one({"parameters": [parameter(name=name, **{"in": "header"}) for name in names]})
    assert list(operation.arguments.schema["properties"]) == ["X-Mine"]


def test_a_parameter_may_be_encoded_as_json(read_one: Any) -> None:
    """With ``content`` instead of a schema; description and deprecation are preserved."""
    declared = {"name": "filter", "in": "query", "description": "What to find", "deprecated": True}
    declared |= {"content": {"application/json": {"schema": {"type": "object"}}}}
    operation = read_one({"parameters": [declared]})
    assert operation.parameters[0].as_json
    assert operation.arguments.schema["properties"]["filter"] == {
        "type": "object",
        "description": "What to find",
        "deprecated": True,
    }
