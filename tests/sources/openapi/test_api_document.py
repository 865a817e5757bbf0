"""API documents are parsed from JSON or YAML, and may refer to certain others."""

import pytest
from toold.sources.openapi import api_document
from toold.sources.openapi.api_document import ApiDocumentError, absolute, may_follow, outside_references, read_document


@pytest.mark.parametrize("text", ['{"a": 1}', '\ufeff{"a": 1}', "a: 1", "{a: 1}", "{'a': 1}"])
def test_json_and_yaml_are_distinguished(text: str) -> None:
    """By content, not by file name; YAML may start with a brace, and both with a byte order mark."""
    assert read_document(text.encode(), "crm.txt") == {"a": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": ', "crm is neither JSON nor YAML"),
        (b"[1]", "is not an object at its top level"),
        (b"just words", "is not an object at its top level"),
        (b'{"a":' * 5000, "crm is neither JSON nor YAML|nested too deeply"),
        (b"a: \xff\xff", "neither JSON nor YAML"),
    ],
)
def test_an_invalid_document_is_an_error(content: bytes, message: str) -> None:
    """The error names the document and the reason."""
    with pytest.raises(ApiDocumentError, match=message):
        read_document(content, "crm")


def test_the_size_of_a_document_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A larger one is not parsed."""
    monkeypatch.setattr(api_document, "MAX_DOCUMENT_BYTES", 10)
    with pytest.raises(ApiDocumentError, match="more than"):
        read_document(b'{"a": "0123456789"}', "crm")


def test_references_to_other_documents_are_found() -> None:
    """Each URL once; references within the document are ignored, and cycles end."""
    document: dict[str, object] = {
        "a": {"$ref": "#/b"},
        "b": [{"$ref": "../common.json#/x"}, {"$ref": "../common.json#/y"}, {"$ref": "https://other.example/z.json"}],
        "c": {"$ref": 5},
        "d": {"$ref": "crm.json#/b"},
    }
    document["again"] = document
    found = set(outside_references(document, "file:///apis/apps/crm.json"))
    assert found == {"file:///apis/common.json", "https://other.example/z.json"}


def test_a_reference_is_relative_to_its_document() -> None:
    """Like URLs; a malformed one resolves to nothing."""
    assert absolute("x.json#/a/b", "https://crm.example/v1/api.json") == ("https://crm.example/v1/x.json", "/a/b")
    assert absolute("http://[", "https://crm.example/") == ("", "")


@pytest.mark.parametrize(
    ("uri", "root", "may"),
    [
        ("file:///apis/common/x.json", "file:///apis/apps/crm.json", True),
        ("file:///apis/apps/x.YAML", "file:///apis/apps/crm.json", True),
        ("file:///etc/passwd", "file:///apis/apps/crm.json", False),
        ("file:///etc/secret.json", "file:///apis/apps/crm.json", False),
        ("file:///apis/%2e%2e/etc/secret.json", "file:///apis/apps/crm.json", False),
        ("file:///apis/apps/.env", "file:///apis/apps/crm.json", False),
        ("http://127.0.0.1/x.json", "file:///apis/apps/crm.json", False),
        ("https://crm.example/x.json", "https://crm.example/api.json", True),
        ("https://other.example/x.json", "https://crm.example/api.json", False),
        ("http://crm.example/x.json", "https://crm.example/api.json", False),
        ("file:///etc/secret.json", "https://crm.example/api.json", False),
        ("http://[", "https://crm.example/api.json", False),
    ],
)
def test_a_document_may_refer_to_its_neighbours_only(uri: str, root: str, may: bool) -> None:
    """Same server; for files, documents below the parent directory."""
    assert may_follow(uri, root) is may
