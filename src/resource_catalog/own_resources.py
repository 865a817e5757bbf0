"""The daemon's own resources: results in files, conversations, workspace files, tools, models, and the instructions of
sources.

Each is shown only to callers whose toolset has a tool that reads the same data.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from ..protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError, ResultTooLargeError
from ..protocol.image_types import image_type
from ..protocol.tool_call import Principal
from ..sources import Entry
from ..tools import SOURCE_INSTRUCTIONS, DaemonView, FileAccess, RetainedFile, ToolsetView

MAX_LISTED: Final = 200
"""The maximum number of results, and of conversations, in a listing, the newest first. Older ones can still be read by
URI."""
MAX_RESOURCE_BYTES: Final = 8 * 1024 * 1024
"""The largest file or result that is read as a resource; equal to the limit of sources' answers
(``max_answer_bytes``)."""

RESULTS: Final = "toold://result/"
CONVERSATIONS: Final = "toold://conversation/"
TOOLS: Final = "toold://tool/"
MODELS: Final = "toold://model/"
FILES: Final = "file://"

_FILE_READER: Final = "smart_file_query"
_RESULT_READER: Final = "read_result"
_MODEL_READER: Final = "listmodels"
_RESULT_TYPES: Final = {"json": "application/json", "ndjson": "application/x-ndjson", "csv": "text/csv"}
_JSON: Final = "application/json"
_DIRECTORY: Final = "inode/directory"


class StoredItem(NamedTuple):
    """A retained result or a conversation of a principal."""

    id: str
    at: float
    """When it was written or last used, in Unix seconds."""
    bytes: int
    extension: str = ""
    """Only for retained results."""


class ResultReader(Protocol):
    """The retained results. Its methods raise ``NotFoundError`` and ``ResultExpiredError``."""

    async def newest(self, principal: Principal, limit: int) -> Sequence[StoredItem]:
        """The principal's newest results, the newest first."""
        ...

    async def find(self, principal: Principal, handle: str) -> RetainedFile:
        """The file with this handle."""
        ...

    async def read_piece(self, principal: Principal, handle: str, offset: int, size: int) -> bytes:
        """Reads up to ``size`` bytes of the file with this handle."""
        ...


class ConversationReader(Protocol):
    """The stored conversations, read-only."""

    async def newest(self, principal: Principal, limit: int) -> Sequence[StoredItem]:
        """The principal's newest conversations, the newest first."""
        ...

    async def read_turns(self, conversation_id: str, principal: Principal) -> list[dict[str, Any]]:
        """The turns of a conversation of the principal, the oldest first.

        Raises:
            NotFoundError: the principal has no such conversation.
        """
        ...


class OwnResources:
    """Lists and reads the daemon's resources."""

    def __init__(
        self, results: ResultReader, conversations: ConversationReader, daemon: Callable[[], DaemonView]
    ) -> None:
        self._results = results
        self._conversations = conversations
        self._daemon = daemon

    def __repr__(self) -> str:
        return "<OwnResources>"

    async def entries(self, view: ToolsetView, principal: Principal, files: FileAccess) -> list[Entry]:
        """The resources of a caller: workspace directories, newest results and conversations, and instructions of
        sources."""
        listed: list[Entry] = []
        if _FILE_READER in view.tools:
            listed += [
                _entry(root.as_uri(), root.name or "/", "A workspace directory; files below it are resources too.")
                | {"mimeType": _DIRECTORY}
                for root in await files.readable_roots()
            ]
        if _RESULT_READER in view.tools:
            listed += [
                _entry(f"{RESULTS}{item.id}", f"result {item.id}", "A result that was too large to send.", item)
                | {"mimeType": _RESULT_TYPES.get(item.extension, _JSON)}
                for item in await self._results.newest(principal, MAX_LISTED)
            ]
        if _has_conversations(view):
            listed += [
                _entry(f"{CONVERSATIONS}{item.id}", f"conversation {item.id}", "The turns of a conversation.", item)
                | {"mimeType": _JSON}
                for item in await self._conversations.newest(principal, MAX_LISTED)
            ]
        listed += [
            _entry(f"{SOURCE_INSTRUCTIONS}{source}", f"instructions of {source}", "What this source tells models.")
            | {"mimeType": "text/plain"}
            for source in view.source_instructions
        ]
        return listed

    def templates(self, view: ToolsetView) -> list[Entry]:
        """The templates of the resources that a caller may read."""
        listed = [(f"{TOOLS}{{name}}", "tool", "The description and the schemas of a tool.", _JSON)]
        if _MODEL_READER in view.tools:
            listed.append((f"{MODELS}{{id}}", "model", "What is known about a model.", _JSON))
        if _FILE_READER in view.tools:
            listed.append((f"{FILES}{{+path}}", "workspace file", "A file or directory of the workspace.", ""))
        if _RESULT_READER in view.tools:
            listed.append((f"{RESULTS}{{handle}}", "result", "A retained result, by its handle.", ""))
        if _has_conversations(view):
            what = "The turns of a conversation, by its continuation_id."
            listed.append((f"{CONVERSATIONS}{{id}}", "conversation", what, _JSON))
        return [
            {"uriTemplate": uri, "name": name, "description": what, **({"mimeType": kind} if kind else {})}
            for uri, name, what, kind in listed
        ]

    async def read(self, uri: str, view: ToolsetView, principal: Principal, files: FileAccess) -> dict[str, Any]:
        """The content of a resource.

        Raises:
            CallError: it cannot be read; NotFoundError if the caller has no such resource.
        """
        key = unquote(uri.partition("://")[2].partition("/")[2])
        if uri.startswith(TOOLS) and key in view.tools:
            return _text(uri, _JSON, msgspec.json.format(msgspec.json.encode(view.tools[key].info)).decode())
        if uri.startswith(SOURCE_INSTRUCTIONS) and key in view.source_instructions:
            return _text(uri, "text/plain", view.source_instructions[key])
        if uri.startswith(MODELS) and _MODEL_READER in view.tools:
            model = self._daemon().catalog.resolve(key)
            return _text(uri, _JSON, msgspec.json.format(msgspec.json.encode(model)).decode())
        if uri.startswith(RESULTS) and _RESULT_READER in view.tools:
            return await self._result(uri, key, principal)
        if uri.startswith(CONVERSATIONS) and _has_conversations(view):
            turns = await self._conversations.read_turns(key, principal)
            return _text(uri, _JSON, msgspec.json.format(msgspec.json.encode(turns)).decode())
        if uri.startswith(FILES) and _FILE_READER in view.tools:
            return await _file(uri, files)
        raise NotFoundError(f"There is no resource {uri[:200]!r}; resources/list and its templates name them.")

    async def has_file(self, uri: str, view: ToolsetView, files: FileAccess) -> bool:
        """Whether a URI is that of a workspace file or directory which the caller may read."""
        if not uri.startswith(FILES) or _FILE_READER not in view.tools:
            return False
        try:
            await files.locate(_path_of(uri))
        except CallError:
            return False
        return True

    async def _result(self, uri: str, handle: str, principal: Principal) -> dict[str, Any]:
        file = await self._results.find(principal, handle)
        if file.size > MAX_RESOURCE_BYTES:
            raise ResultTooLargeError(
                f"The result has {file.size:,} bytes, more than the {MAX_RESOURCE_BYTES:,} of a resource; use "
                "read_result."
            )
        content = await self._results.read_piece(principal, handle, 0, file.size)
        return _text(uri, _RESULT_TYPES.get(file.extension, _JSON), content.decode(errors="replace"))

    async def complete(
        self, template: str, value: str, view: ToolsetView, principal: Principal, files: FileAccess
    ) -> Iterable[str]:
        """The possible values for the beginning of a template's variable."""
        if template.startswith(TOOLS):
            return view.tools
        if template.startswith(MODELS):
            return self.models(view)
        if template.startswith(FILES) and _FILE_READER in view.tools:
            return await paths_like(value, files)
        if template.startswith(RESULTS) and _RESULT_READER in view.tools:
            return [item.id for item in await self._results.newest(principal, MAX_LISTED)]
        if template.startswith(CONVERSATIONS) and _has_conversations(view):
            return [item.id for item in await self._conversations.newest(principal, MAX_LISTED)]
        return ()

    def models(self, view: ToolsetView) -> list[str]:
        """The ids of the models that a caller may ask."""
        return [model.id for model in self._daemon().catalog.models] if _MODEL_READER in view.tools else []


async def paths_like(value: str, files: FileAccess) -> list[str]:
    """Returns the paths that begin with ``value``, directories with a slash at the end."""
    directory, _, _ = value.rpartition("/")
    if not value.startswith("/"):
        roots = [root.as_posix() for root in await files.readable_roots()]
        if not directory:
            return [*roots, *await files.names_in(".")] if roots else []
    names = await files.names_in(directory or "/")
    return [f"{directory}/{name}" for name in names]


async def _file(uri: str, files: FileAccess) -> dict[str, Any]:
    path = _path_of(uri)
    located = await files.locate(path)
    if located.is_dir():
        names = await files.names_in(path)
        return _text(uri, _DIRECTORY, "\n".join(names))
    content = (await files.read_bytes(path, MAX_RESOURCE_BYTES)).content
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or "\0" in text:
        kind = image_type(content) or "application/octet-stream"
        return {"contents": [{"uri": uri, "mimeType": kind, "blob": base64.b64encode(content).decode()}]}
    return _text(uri, "text/plain", text)


def _path_of(uri: str) -> str:
    """Returns the path of a ``file:`` URI of this machine.

    Raises:
        InvalidArgumentsError: it is another URI.
    """
    try:
        parts = urlsplit(uri)
        path = unquote(parts.path, errors="strict") if parts.netloc in {"", "localhost"} else ""
    except ValueError:  # not a URI, or not UTF-8
        parts, path = urlsplit(""), ""
    if not path.startswith("/") or parts.query or parts.fragment:
        raise InvalidArgumentsError("uri: must be file:/// and an absolute path, with special characters as %XX.")
    return path


def _has_conversations(view: ToolsetView) -> bool:
    return any(tool.conversational for tool in view.tools.values())


def _entry(uri: str, name: str, description: str, item: StoredItem | None = None) -> dict[str, Any]:
    size = {} if item is None else {"size": item.bytes}
    return {"uri": uri, "name": name, "description": description, **size}


def _text(uri: str, kind: str, text: str) -> dict[str, Any]:
    return {"contents": [{"uri": uri, "mimeType": kind, "text": text}]}
