"""Parameters: which there are, and how each is written."""

from typing import Any

import pytest


def parameter(**fields: Any) -> dict[str, Any]:
    return {"name": "q", "in": "query", "schema": {"type": "string"}} | fields


def test_an_operations_parameter_takes_the_place_of_its_paths(read_paths: Any) -> None:
    """By name and place; the others of the path stay."""
    api = read_paths(
        {
            "/x": {
                "parameters": [parameter(), parameter(name="p")],
                "get": {"operationId": "x", "parameters": [parameter(schema={"type": "integer"})]},
            }
        }
    )
    assert api.operations[0].arguments.schema["properties"] == {"q": {"type": "integer"}, "p": {"type": "string"}}


def test_same_names_of_several_places_stand_side_by_side(read_one: Any) -> None:
    """The path's has the name, the others say where they go, fields of the body last."""
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
    ("said", "arguments", "noted"),
    [
        ([parameter(name=7)], {}, "a parameter without a name was left out"),
        ([parameter(**{"in": "body"})], {}, "the parameter 'q' is in 'body', which is no place; left out"),
        ([parameter(**{"in": ["query"]})], {}, "which is no place; left out"),
        (["q"], {}, "a parameter without a name was left out"),
        ("q", {}, "parameters is no list; left out"),
        ([{"$ref": "#/components/parameters/Gone"}], {}, "a parameter was left out: #/components/parameters/Gone"),
        ([parameter(name="a b", **{"in": "header"})], {}, "the parameter 'a b' can be no header; left out"),
        ([parameter(**{"in": "path"})], {}, "the path has no place for the parameter 'q'; left out of the arguments"),
        ([{"name": "q", "in": "query"}], {"q": {"type": "string"}}, "has no schema; taken as a string"),
        ([{"name": "q", "in": "query", "type": "integer"}], {"q": {"type": "integer"}}, "taken as it says"),
        ([parameter(style="fancy")], {"q": {"type": "string"}}, "the style of 'q' is 'fancy'; taken as form"),
    ],
)
def test_what_is_wrong_with_a_parameter_is_noted(said: Any, arguments: Any, noted: str, read_paths: Any) -> None:
    """The operation stays, with the parameters that are understood."""
    api = read_paths({"/x": {"get": {"operationId": "x", "parameters": said}}})
    assert api.operations[0].arguments.schema["properties"] == arguments
    assert [note.kind for note in api.notes] == ["repaired"]
    assert noted in api.notes[0].what


def test_headers_that_are_https_own_are_no_arguments(read_one: Any) -> None:
    """Neither the secret's, nor those that would break the request."""
    names = ("Authorization", "content-type", "Accept", "Host", "Content-Length", "Transfer-Encoding", "X-Mine")
    operation = read_one({"parameters": [parameter(name=name, **{"in": "header"}) for name in names]})
    assert list(operation.arguments.schema["properties"]) == ["X-Mine"]


def test_a_parameter_may_be_json(read_one: Any) -> None:
    """``content`` in a schema's place says so; description and deprecation come along."""
    said = {"name": "filter", "in": "query", "description": "What to find", "deprecated": True}
    said |= {"content": {"application/json": {"schema": {"type": "object"}}}}
    operation = read_one({"parameters": [said]})
    assert operation.parameters[0].as_json
    assert operation.arguments.schema["properties"]["filter"] == {
        "type": "object",
        "description": "What to find",
        "deprecated": True,
    }
