"""Retained results that the answer of an agent names, as files of its artifact. Pure."""

import base64
import re
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ..tool_call import ToolResult

MAX_NAMED: Final = 16
"""At most this many results of an answer become files; further handles stay text."""
MAX_INLINE_BYTES: Final = 64 * 1024
"""The maximum size of a file in the artifact itself, which each answer with the task repeats."""
RESULTS_PATH: Final = "/results/"
"""The path, below an agent's URL, at which its client reads retained results."""

_HANDLE: Final = re.compile(r"(?<![\w./-])[0-9a-f]{12}-[0-9a-z]+(?:[./#][\w#-]+)*")
"""Matches the id of a call, with the names of child calls."""
_MAX_HANDLE_CHARS: Final = 300
_TYPES: Final = {"json": "application/json", "ndjson": "application/x-ndjson", "csv": "text/csv"}


def handles_in(result: ToolResult) -> list[str]:
    """The possible handles in an answer: the handle of the answer itself if it was too large to send, or handles that
    it names.

    Call it in a thread if the result is long.
    """
    structured = result.structured if isinstance(result.structured, dict) else {}
    if result.metadata.spilled:
        handle = structured.get("handle")
        return [handle] if isinstance(handle, str) else []
    answer = structured.get("answer", result.text)
    text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
    found = (match[0] for match in _HANDLE.finditer(text) if len(match[0]) <= _MAX_HANDLE_CHARS)
    return list(dict.fromkeys(found))[:MAX_NAMED]


def media_type_of(extension: str) -> str:
    """The media type of a retained result."""
    return _TYPES[extension]


def file_name_of(handle: str, extension: str) -> str:
    """The name of a retained result as a file."""
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', handle)}.{extension}"


def inline_part(handle: str, extension: str, content: bytes) -> dict[str, Any]:
    """The part of a file whose content is in the part."""
    return {"raw": base64.b64encode(content).decode(), **_facts(handle, extension)}


def linked_part(handle: str, extension: str, agent_url: str) -> dict[str, Any]:
    """The part of a file that the client reads at a URL."""
    return {"url": f"{agent_url}{RESULTS_PATH}{quote(handle, safe='')}", **_facts(handle, extension)}


def _facts(handle: str, extension: str) -> dict[str, str]:
    return {"mediaType": media_type_of(extension), "filename": file_name_of(handle, extension)}
