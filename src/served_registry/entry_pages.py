"""Lists of the served registry: filters, pages and their size. Pure."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from .registry_content import EntryVersion, RegistryContent
from .registry_kinds import NAMES, Kind
from .registry_problem import RegistryRefusedError

MAX_PAGE: Final = 1000
"""The maximum number of entries in a page."""
MAX_LIST_BYTES: Final = 16 * 1024**2
"""The limit for one answer; longer lists are read in pages."""

_PAGING: Final = ("limit", "offset", "cursor")
_FILTERS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.AGENT: ("skill", "tool", "tag", "agent_type"),
    Kind.SKILL: ("tag",),
    Kind.PROMPT: ("tag",),
    Kind.TOOL: ("provider", "active"),
}
_encode: Final = msgspec.json.Encoder().encode


def list_answer(content: RegistryContent, kind: Kind, query: Mapping[str, str]) -> bytes:
    """The matching entries, oldest first. Without ``limit``, ``offset`` and ``cursor``, returns all of them, in the
    predecessor's form.

    Raises:
        RegistryRefusedError: a parameter is invalid, or the answer would be too long.
    """
    allowed = (*_FILTERS.get(kind, ()), *_PAGING)
    for name in query:
        if name not in allowed:
            raise _query_problem(name, f"is not a parameter; there are {', '.join(allowed)}")
    known = content.references() if kind is Kind.AGENT else {}
    entries = content.ordered(kind)
    for name, value in query.items():
        if name not in _PAGING and value:
            matches = _matcher(name, value, known)
            entries = [entry for entry in entries if matches(entry.table)]
    total, paged, more = len(entries), any(name in query for name in _PAGING), False
    if paged:
        entries, more = _page(entries, query)
    shown, size = list[bytes](), 0
    for entry in entries:
        encoded = _encode(content.view(kind, entry, known))
        size += len(encoded)
        if size > MAX_LIST_BYTES:
            if not paged or not shown:
                message = f"the list has more than {MAX_LIST_BYTES} bytes; ask for pages with limit"
                raise RegistryRefusedError(413, message)
            more = True
            break
        shown.append(encoded)
    answer: dict[str, Any] = {NAMES[kind].entries: [msgspec.Raw(each) for each in shown], "count": len(shown)}
    if paged:
        answer["total"] = total
        answer["next_cursor"] = _cursor(entries[len(shown) - 1]) if more and shown else None
    return _encode(answer)


def _page(entries: Sequence[EntryVersion], query: Mapping[str, str]) -> tuple[list[EntryVersion], bool]:
    """The entries of the page, and whether there are more after it."""
    limit = _number(query, "limit", MAX_PAGE, least=1, most=MAX_PAGE)
    offset = _number(query, "offset", 0, least=0, most=10**9)
    if "cursor" in query:
        if "offset" in query:
            raise _query_problem("offset", "and cursor exclude each other")
        after = _place_of(query["cursor"])
        entries = [entry for entry in entries if _place(entry) > after]
    return list(entries[offset : offset + limit]), offset + limit < len(entries)


def _number(query: Mapping[str, str], name: str, default: int, *, least: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and least <= int(text) <= most):
        raise _query_problem(name, f"must be a number from {least} to {most}")
    return int(text)


def _place(entry: EntryVersion) -> tuple[float, str]:
    return entry.row.created_at, entry.row.id


def _cursor(entry: EntryVersion) -> str:
    return base64.urlsafe_b64encode(_encode(_place(entry))).decode().rstrip("=")


def _place_of(cursor: str) -> tuple[float, str]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=tuple[float, str])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise _query_problem("cursor", "is not a next_cursor of this registry") from None


def _matcher(
    name: str, value: str, known: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Callable[[Mapping[str, Any]], bool]:
    """A test for whether an entry matches a filter, ignoring case."""
    wanted = value.lower()
    match name:
        case "tag":
            return lambda table: wanted in (tag.lower() for tag in table["tags"])
        case "skill":
            skills = {
                entry_id
                for entry_id, skill in known["skills"].items()
                if wanted == entry_id.lower()
                or wanted in skill["name"].lower()
                or wanted in skill["description"].lower()
            }
            return lambda table: not skills.isdisjoint(table["skill_ids"])
        case "tool":
            return lambda table: wanted in (each.lower() for each in table["tool_ids"])
        case "active":
            if wanted not in {"true", "false"}:
                raise _query_problem("active", "must be true or false")
            return lambda table: table["active"] is (wanted == "true")
        case _:
            return lambda table: str(table[name]).lower() == wanted


def _query_problem(name: str, message: str) -> RegistryRefusedError:
    return RegistryRefusedError(422, [{"loc": ["query", name], "msg": message, "type": "value_error"}])
