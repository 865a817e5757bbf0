"""Resolves ``$ref`` within and between documents. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from .api_document import absolute

_MAX_HOPS: Final = 32


class BrokenReferenceError(Exception):
    """A reference cannot be resolved; the message names it and the reason."""


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value, with its document, to which its references are relative."""

    value: Any
    uri: str
    json_pointer: str = ""
    """The JSON Pointer of a referenced value; empty for others."""

    def part(self, value: Any) -> "DocumentNode":
        """Returns a part of this value."""
        return DocumentNode(value, self.uri)


class JsonReferences:
    """Resolves references between the documents of a source."""

    def __init__(self, documents: Mapping[str, Any], absent: Mapping[str, str]) -> None:
        """``absent``: URLs of missing documents, with the reason."""
        self._documents = documents
        self._absent = absent

    def resolve(self, node: DocumentNode) -> DocumentNode:
        """Returns the value or, through chains of references, the referenced value.

        Raises:
            BrokenReferenceError: a reference leads nowhere, or the references are circular.
        """
        for _ in range(_MAX_HOPS):
            target = node.value.get("$ref") if isinstance(node.value, dict) else None
            if not isinstance(target, str):
                return node
            node = self._target(target, node.uri)
        raise BrokenReferenceError(f"{_shown(node.value)} is circular")

    def _target(self, reference: str, base: str) -> DocumentNode:
        uri, fragment = absolute(reference, base) if not reference.startswith("#") else (base, reference[1:])
        if uri not in self._documents:
            why = self._absent.get(uri, "the document was not loaded")
            raise BrokenReferenceError(f"{reference[:200]} leads nowhere: {why}")
        node = DocumentNode(self._documents[uri], uri)
        if fragment and not fragment.startswith("/"):
            raise BrokenReferenceError(f"{reference[:200]} names an anchor, which is not supported")
        for number, token in enumerate(fragment.split("/")[1:]):
            if number > _MAX_HOPS:
                raise BrokenReferenceError(f"{reference[:200]} is too long")
            node = self._step(node, unquote(token).replace("~1", "/").replace("~0", "~"), reference)
        return DocumentNode(node.value, node.uri, fragment or "/")

    def _step(self, node: DocumentNode, token: str, reference: str) -> DocumentNode:
        value = node.value
        if isinstance(value, dict) and token in value:
            return node.part(value[token])
        if isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            return node.part(value[int(token)])
        raise BrokenReferenceError(f"{reference[:200]} leads nowhere: {token[:80]!r} does not exist")


def _shown(value: Any) -> str:
    return str(value.get("$ref"))[:200] if isinstance(value, dict) else "a reference"
