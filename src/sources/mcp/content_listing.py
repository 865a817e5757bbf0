"""Reads a server's resources, templates and prompts within limits, and omits unusable entries. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ...protocol.terminal_text import terminal_safe
from ..source import SourceNote
from ..upstream_definition import UpstreamDefinition

MAX_ENTRIES: Final = 2000
"""The maximum number of resources, templates or prompts of one server, as for tools
(``upstream_listing.MAX_TOOLS``).
"""
MAX_ENTRY_BYTES: Final = 64 * 1024
"""The maximum size of an entry as JSON, with names, descriptions and icons."""
MAX_CONTENT_BYTES: Final = 4 * 1024 * 1024
"""The maximum size of all entries of one kind: 2 KiB times the maximum number of entries."""
MAX_CONTENT_PAGES: Final = 200
MAX_URI_CHARS: Final = 4096
MAX_PROMPT_ARGUMENTS: Final = 64
MAX_COMPLETIONS: Final = 100
"""The maximum number of values in one completion, from MCP."""

_TEXTS: Final = ("name", "title", "description")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20\x7f]*")
_ROLES: Final = ("user", "assistant")


class EntryCollector:
    """Collects the pages of one list; ``key`` is the field that identifies an entry."""

    def __init__(self, key: str) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        """The entries by the value of the key field."""
        self.notes: list[SourceNote] = []
        self._key = key
        self._bytes = 0
        self._pages = 0
        self._cursors: set[str] = set()

    def add_page(self, entries: object, cursor: object) -> str | None:
        """Adds a page; returns the next cursor, or None if the list is complete or a limit is reached."""
        self._pages += 1
        limit = None
        for entry in entries if isinstance(entries, list) else ():
            limit = self._reached_limit()
            if limit is not None:
                break
            self._add(entry)
        if not isinstance(cursor, str) or not cursor:
            cursor = None
        if limit is None and cursor is not None and self._pages >= MAX_CONTENT_PAGES:
            limit = f"{MAX_CONTENT_PAGES} pages"
        if limit is None and cursor in self._cursors:
            limit = "a page whose cursor repeats"
        if limit is not None:
            self.notes.append(SourceNote("omitted", f"the list by {self._key}", f"everything after {limit}"))
            return None
        if cursor is not None:
            self._cursors.add(cursor)
        return cursor

    def _reached_limit(self) -> str | None:
        if len(self.entries) >= MAX_ENTRIES:
            return f"{MAX_ENTRIES:,} entries"
        return f"{MAX_CONTENT_BYTES // 1024**2} MiB" if self._bytes >= MAX_CONTENT_BYTES else None

    def _add(self, entry: object) -> None:
        key = entry.get(self._key) if isinstance(entry, dict) else None
        shown = key if isinstance(key, str) and key else "an entry"
        if not isinstance(entry, dict) or not isinstance(key, str) or not key:
            reason = f"it has no {self._key}"
        elif self._key != "name" and (len(key) > MAX_URI_CHARS or not _URI.fullmatch(key)):
            reason = f"its {self._key} is not a URI of up to {MAX_URI_CHARS:,} characters without spaces"
        elif key in self.entries:
            reason = "it is a duplicate"
        elif (size := len(msgspec.json.encode(entry))) > MAX_ENTRY_BYTES:
            reason = f"it has {size:,} bytes, more than {MAX_ENTRY_BYTES // 1024} KiB"
        else:
            self.entries[key] = _cleaned(entry, key)
            self._bytes += size
            return
        if len(self.notes) < MAX_ENTRIES:
            self.notes.append(SourceNote("omitted", shown, reason))


def _cleaned(entry: dict[str, Any], key: str) -> dict[str, Any]:
    """Returns the entry with printable texts and a name, which MCP requires."""
    cleaned = dict(entry)
    for field in _TEXTS:
        if field in cleaned:
            text = cleaned[field]
            if not isinstance(text, str):
                del cleaned[field]
            else:
                cleaned[field] = terminal_safe(text, keep="\n\t")
    cleaned.setdefault("name", key)
    return cleaned


def prompt_definition(entry: Mapping[str, Any]) -> UpstreamDefinition:
    """Returns a prompt in the form for pins: everything by which callers choose the prompt and fill it in."""
    arguments = prompt_arguments(entry)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            argument["name"]: {"type": "string", "description": argument.get("description", "")}
            for argument in arguments
        },
        "required": [argument["name"] for argument in arguments if argument.get("required") is True],
    }
    title = entry.get("title", "")
    return UpstreamDefinition(entry["name"], entry.get("description", ""), schema, hints={"title": title})


def prompt_arguments(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the usable arguments of a prompt, at most ``MAX_PROMPT_ARGUMENTS``."""
    usable: list[dict[str, Any]] = []
    listed = entry.get("arguments")
    for argument in listed if isinstance(listed, list) else ():
        if isinstance(argument, dict) and isinstance(argument.get("name"), str) and len(usable) < MAX_PROMPT_ARGUMENTS:
            usable.append(_cleaned(argument, argument["name"]))
    return usable


def is_read_result(result: Mapping[str, Any]) -> bool:
    """Whether a server's answer to ``resources/read`` is valid."""
    contents = result.get("contents")
    return isinstance(contents, list) and all(
        isinstance(part, dict)
        and isinstance(part.get("uri"), str)
        and (isinstance(part.get("text"), str) or isinstance(part.get("blob"), str))
        for part in contents
    )


def is_prompt_result(result: Mapping[str, Any]) -> bool:
    """Whether a server's answer to ``prompts/get`` is valid."""
    messages = result.get("messages")
    return isinstance(messages, list) and all(
        isinstance(message, dict)
        and message.get("role") in _ROLES
        and isinstance(message.get("content"), dict)
        and isinstance(message["content"].get("type"), str)
        for message in messages
    )


def bounded_completion(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns a server's answer to ``completion/complete`` with at most ``MAX_COMPLETIONS`` values; None if it is not
    valid.
    """
    completion = result.get("completion")
    values = completion.get("values") if isinstance(completion, dict) else None
    if not isinstance(completion, dict) or not isinstance(values, list) or not _all_texts(values):
        return None
    bounded: dict[str, Any] = {"values": values[:MAX_COMPLETIONS]}
    total = completion.get("total")
    if isinstance(total, int) and not isinstance(total, bool) and total >= 0:
        bounded["total"] = total
    if len(values) > MAX_COMPLETIONS:
        bounded["hasMore"] = True
    elif isinstance(completion.get("hasMore"), bool):
        bounded["hasMore"] = completion["hasMore"]
    return {"completion": bounded}


def _all_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)
