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
