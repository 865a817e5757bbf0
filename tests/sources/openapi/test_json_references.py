"""References: followed within and between documents, and broken ones told."""

from typing import Any

import pytest
from toold.sources.openapi.json_references import BrokenReferenceError, JsonReferences, ReferencePlace

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


def followed(reference: str, uri: str = MAIN) -> ReferencePlace:
    return REFERENCES.followed(ReferencePlace({"$ref": reference}, uri))


@pytest.mark.parametrize(
    ("reference", "value", "uri"),
    [
        ("#/a", {"found": True}, COMMON),
        ("#/list/0", {"found": 1}, MAIN),
        ("#/quoted/a%20b", {"found": 2}, MAIN),
        ("common.json#/parts/back", {"found": 1}, MAIN),
    ],
)
def test_references_lead_to_their_end(reference: str, value: object, uri: str) -> None:
    """Through other references and documents, with what follows relative to the document where it ends."""
    place = followed(reference)
    assert (place.value, place.uri) == (value, uri)


def test_what_is_no_reference_is_itself() -> None:
    """A property that is called ``$ref`` and is no string is one like others."""
    place = ReferencePlace({"$ref": {"type": "string"}}, MAIN)
    assert REFERENCES.followed(place) is place


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("#/nothing", "there is no 'nothing'"),
        ("#/list/7", "there is no '7'"),
        ("#/list/x", "there is no 'x'"),
        ("#anchor", "an anchor"),
        ("#/circle", "goes round in a circle"),
        ("gone.json#/x", "gone.json is not there"),
        ("https://other.example/x", "that document is not there"),
        ("#/" + "/".join("a" * 50), "there is no|too long"),
    ],
)
def test_a_broken_reference_says_why(reference: str, said: str) -> None:
    """The error names it."""
    with pytest.raises(BrokenReferenceError, match=said):
        followed(reference)
