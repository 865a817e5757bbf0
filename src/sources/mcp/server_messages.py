"""Bounds a server's messages before they reach the SDK, and converts them to forms that the SDK accepts.

Importing this module takes a second, because of the SDK.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse

from ..source import SourceNote
from .server_requests import ServerRequests
from .upstream_exchange import UNREADABLE
from .upstream_listing import MAX_TOOLS, remove_invalid_tools

MAX_BLOCKS: Final = 5000
"""The maximum number of content blocks of a result, contents of a resource, or messages of a prompt. Each blocks all
calls for 0.01 ms.
"""
_BLOCK_LISTS: Final = ("content", "contents", "messages")


class ServerMessages:
    """Implements the SDK's ``ReadStream``. Removes invalid tools, and converts a created task to a tool result."""

    def __init__(self, messages: Any, notes: list[SourceNote], requests: ServerRequests) -> None:
        """Notes about removed tools are appended to ``notes``."""
        self._messages = messages
        self._notes = notes
        self._requests = requests

    @property
    def last_context(self) -> Any:
        """The sender's context, if the transport has one."""
        return getattr(self._messages, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return await self._next(self._messages.receive)

    async def aclose(self) -> None:
        await self._messages.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._next(self._messages.__anext__)

    async def __aenter__(self) -> Self:
        await self._messages.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._messages.__aexit__(kind, error, traceback)

    async def _next(self, take: Callable[[], Awaitable[SessionMessage | Exception]]) -> SessionMessage | Exception:
        while not self._admits(item := await take()):
            pass
        return self._converted(item)

    def _admits(self, item: SessionMessage | Exception) -> bool:
        return not isinstance(item, SessionMessage) or self._requests.admits(item.message)

    def _converted(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        message = item.message if isinstance(item, SessionMessage) else None
        if not isinstance(message, JSONRPCResponse):
            return item
        long = next((name for name in _BLOCK_LISTS if _length(message.result.get(name)) > MAX_BLOCKS), None)
        if long is not None:
            error = ErrorData(code=UNREADABLE, message=f"its {long} has more than {MAX_BLOCKS:,} entries")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
        if "content" not in message.result:  # not a tool result
            removed = remove_invalid_tools(message.result)
            self._notes += removed[: MAX_TOOLS - len(self._notes)]
            if isinstance(message.result.get("task"), Mapping):
                message.result["content"] = []  # the SDK does not support created tasks and demands a tool's result
        return item


def _length(value: object) -> int:
    return len(value) if isinstance(value, list) else 0
