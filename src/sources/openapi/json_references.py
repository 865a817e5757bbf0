"""Following ``$ref`` through one or more documents. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from .api_document import absolute

_MAX_HOPS: Final = 32


class BrokenReferenceError(Exception):
    """A reference leads nowhere; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class ReferencePlace:
    """A value in a document, with where it stands: what it refers to is relative to that document."""

    value: Any
    uri: str
    pointer: str = ""
    """JSON Pointer of a value that was referred to; empty for others."""

    def at(self, value: Any) -> "ReferencePlace":
        """A part of this value."""
        return ReferencePlace(value, self.uri)


class JsonReferences:
    """All documents of a source, by their addresses."""

    def __init__(self, documents: Mapping[str, Any], absent: Mapping[str, str]) -> None:
        """``absent``: address → why the document could not be had."""
        self._documents = documents
        self._absent = absent

    def followed(self, place: ReferencePlace) -> ReferencePlace:
        """The value itself, or what it refers to, through as many references as it takes.

        Raises:
            BrokenReferenceError: there is nothing, or the references go round in a circle.
        """
        for _ in range(_MAX_HOPS):
            target = place.value.get("$ref") if isinstance(place.value, dict) else None
            if not isinstance(target, str):
                return place
            place = self._target(target, place.uri)
        raise BrokenReferenceError(f"{_shown(place.value)} goes round in a circle")

    def _target(self, reference: str, base: str) -> ReferencePlace:
        uri, fragment = absolute(reference, base) if not reference.startswith("#") else (base, reference[1:])
        if uri not in self._documents:
            why = self._absent.get(uri, "that document is not there")
            raise BrokenReferenceError(f"{reference[:200]} leads nowhere: {why}")
        place = ReferencePlace(self._documents[uri], uri)
        if fragment and not fragment.startswith("/"):
            raise BrokenReferenceError(f"{reference[:200]} names an anchor, which is not followed")
        for number, token in enumerate(fragment.split("/")[1:]):
            if number > _MAX_HOPS:
                raise BrokenReferenceError(f"{reference[:200]} is too long")
            place = self._step(place, unquote(token).replace("~1", "/").replace("~0", "~"), reference)
        return ReferencePlace(place.value, place.uri, fragment or "/")

    def _step(self, place: ReferencePlace, token: str, reference: str) -> ReferencePlace:
        value = place.value
        if isinstance(value, dict) and token in value:
            return place.at(value[token])
        if isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            return place.at(value[int(token)])
        raise BrokenReferenceError(f"{reference[:200]} leads nowhere: there is no {token[:80]!r}")


def _shown(value: Any) -> str:
    return str(value.get("$ref"))[:200] if isinstance(value, dict) else "a reference"
