"""The OpenAPI document of tools whose schemas have references and odd names."""

from typing import Any

import msgspec
import pytest
from openapi_spec_validator import validate
from toold.protocol.rest.openapi_document import openapi_document
from toold.protocol.tool_call import Annotations, ToolInfo

READ_ONLY = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def schema_of(schema: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document of one tool with this schema, and the schema in it."""
    tool = ToolInfo("tool", "Does.\nMore.", schema, READ_ONLY)
    document = msgspec.json.decode(openapi_document([tool], toolset="full", server="http://127.0.0.1:8080"))
    return document, document["components"]["schemas"]["tool.arguments"]


def test_references_point_into_the_document() -> None:
    """References within a schema are rewritten, also to the schema itself; data that looks like one stays."""
    document, schema = schema_of(
        {
            "type": "object",
            "$defs": {"$ref": {"type": "string"}, "tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "properties": {
                "tree": {"$ref": "#/$defs/tree"},
                "$ref": {"type": "string"},
                "self": {"$ref": "#"},
                "fixed": {"const": {"$ref": "#/$defs/tree"}},
            },
        }
    )
    validate(document)
    place = "#/components/schemas/tool.arguments"
    assert schema["properties"]["tree"] == {"$ref": f"{place}/$defs/tree"}
    assert schema["$defs"]["tree"]["items"] == {"$ref": f"{place}/$defs/tree"}
    assert schema["properties"]["self"] == {"$ref": place}
    assert schema["properties"]["$ref"] == {"type": "string"}
    assert schema["properties"]["fixed"] == {"const": {"$ref": "#/$defs/tree"}}


@pytest.mark.parametrize(("required", "optional"), [(["a"], True), ([], False)])
def test_the_body_is_required_if_an_argument_is(required: list[str], optional: bool) -> None:
    """A tool without required arguments can be called without a body."""
    document, _ = schema_of({"type": "object", "properties": {"a": {}}, "required": required})
    operation = document["paths"]["/tools/tool"]["post"]
    assert (operation["requestBody"]["required"], operation["summary"]) == (optional, "Does.")


def test_a_discriminator_points_into_the_document() -> None:
    """Pydantic writes its mapping with references; names of schemas stay."""
    mapping = {"cat": "#/$defs/cat", "dog": "Dog"}
    pet = {"oneOf": [{"$ref": "#/$defs/cat"}], "discriminator": {"propertyName": "kind", "mapping": mapping}}
    kinds = {"cat": {"type": "object", "properties": {"discriminator": {"type": "string"}}}}
    document, schema = schema_of({"type": "object", "$defs": kinds, "properties": {"pet": pet}})
    validate(document)
    place = "#/components/schemas/tool.arguments/$defs/cat"
    assert schema["properties"]["pet"]["discriminator"]["mapping"] == {"cat": place, "dog": "Dog"}
    assert schema["$defs"] == kinds


def test_schemas_of_earlier_drafts_do_not_make_the_document_invalid() -> None:
    """A server's tuples, boolean bounds, ids and wrong defaults are those of 2020-12 in the document."""
    document, schema = schema_of(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "https://shop.example/order",
            "type": "object",
            "definitions": {"name": {"type": "string", "default": None}},
            "properties": {
                "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}], "additionalItems": False},
                "any": {"type": "array", "items": []},
                "count": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "default": 1.0},
                "name": {"$ref": "https://shop.example/order#/definitions/name"},
            },
        }
    )
    validate(document)
    assert schema == {
        "type": "object",
        "definitions": {"name": {"type": "string"}},
        "properties": {
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": False},
            "any": {"type": "array", "items": True},
            "count": {"type": "integer", "exclusiveMinimum": 0, "default": 1.0},
            "name": {"$ref": "#/components/schemas/tool.arguments/definitions/name"},
        },
    }
