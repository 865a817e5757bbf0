"""Distinguishes envelopes, whose other fields only describe their list, from records."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PAGING: Final = (
    "count counts cursor cursors meta metadata more next offset page pages paging pagination prev previous "
    "total totals trace"
)
"""A name with one of these words describes the list: ``total_count``, ``nextPageToken``, ``traceId``."""
_DESCRIPTIVE: Final = (
    "after aggregations api at before cache code complete context correlation current done duration elapsed end "
    "error exhaustive expand facets failed first found has hits href id incomplete index info is kind last length "
    "limit link links max message ms nb num number object odata ok out params partial per processing query "
    "remaining request response result results schema score self shards size skip start status succeded succeeded "
    "success sync time timed timestamp token took truncated ts type uri url version warning"
)
"""A name of only such words describes the list too: ``startAt``, ``statusCode``, ``request_id``. ``id`` alone names a
record."""

_PAGING_WORDS: Final = frozenset(_PAGING.split())
_DESCRIPTIVE_WORDS: Final = frozenset(_DESCRIPTIVE.split())

_IDENTITIES: Final = ("id", "uid", "name")
"""An object with one of these fields describes a record, under any name, such as ``metadata`` of a Kubernetes
object."""


def describes_list(name: str) -> bool:
    """Whether a field with this name describes a list in the same object: a count, paging, a link, or the state of the
    request.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not _PAGING_WORDS.isdisjoint(words):
        return True
    return bool(words) and words != ["id"] and _DESCRIPTIVE_WORDS.issuperset(words)


def content_around(value: Mapping[str, Any], steps: Sequence[str]) -> tuple[str, ...] | None:
    """The steps to the first field that does not describe the list at ``steps``, in any object around it; None if these
    objects are envelopes of the list.
    """
    for depth, step in enumerate(steps):
        for name, other in value.items():
            if name == step:
                continue
            if not describes_list(name):
                return (*steps[:depth], name)
            if isinstance(other, dict) and (identity := next((key for key in _IDENTITIES if key in other), None)):
                return (*steps[:depth], name, identity)
        value = value[step]
    return None
