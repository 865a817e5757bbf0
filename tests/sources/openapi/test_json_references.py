"""References are resolved within and between documents; broken ones are errors."""

from typing import Any

import pytest
from toold.sources.openapi.json_references import BrokenReferenceError, DocumentNode, JsonReferences

MAIN, COMMON = "file:///apis/crm.json", "file:///apis/common.json"
DOCUMENTS: dict[str, Any] = {
    MAIN: {
        "a": {"$ref": "#/b"},
        "b": {"$ref": "common.json#/parts/x~1y"},
        "list": [{"found": 1}],
        "quoted": {"a b": {"found": 2}},
        "circle": {"$ref": "#/round"},
        "round": {"$ref": "#/circle"},
    },
    COMMON: {"parts": {"x/y": {"found": True}, "back": {"$ref": "crm.json#/list/0"}}},
}
REFERENCES = JsonReferences(DOCUMENTS, {"file:///apis/gone.json": "gone.json is not there"})


def resolve(reference: str, uri: str = MAIN) -> DocumentNode:
    return REFERENCES.resolve(DocumentNode({"$ref": reference}, uri))


@pytest.mark.parametrize(
    ("reference", "value", "uri"),
    [
        ("#/a", {"found": True}, COMMON),
        ("#/list/0", {"found": 1}, MAIN),
        ("#/quoted/a%20b", {"found": 2}, MAIN),
        ("common.json#/parts/back", {"found": 1}, MAIN),
    ],
)
def test_references_are_resolved(reference: str, value: object, uri: str) -> None:
    """Through other references and documents; the result is relative to its own document."""
    node = resolve(reference)
    assert (node.value, node.uri) == (value, uri)


def test_a_value_without_a_reference_is_unchanged() -> None:
    """A ``$ref`` that is not a string is an ordinary property."""
    node = DocumentNode({"$ref": {"type": "string"}}, MAIN)
    assert REFERENCES.resolve(node) is node


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("#/nothing", "'nothing' does not exist"),
        ("#/list/7", "'7' does not exist"),
        ("#/list/x", "'x' does not exist"),
        ("#anchor", "an anchor"),
        ("#/circle", "is circular"),
        ("gone.json#/x", "gone.json is not there"),
        ("https://other.example/x", "the document was not loaded"),
        ("#/" + "/".join("a" * 50), "does not exist|too long"),
    ],
)
def test_a_broken_reference_is_an_error(reference: str, message: str) -> None:
    """The error names it."""
    with pytest.raises(BrokenReferenceError, match=message):
        resolve(reference)
