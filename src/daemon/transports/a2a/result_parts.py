"""Retained results as files of A2A: in artifacts, and at URLs."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from starlette.types import Send

from ....protocol.a2a.a2a_route import AGENTS_PATH
from ....protocol.a2a.named_results import (
    MAX_INLINE_BYTES,
    file_name_of,
    inline_part,
    linked_part,
    media_type_of,
)
from ....protocol.error_codes import CallError
from ....protocol.tool_call import Principal
from ....tools import RetainedFile

PIECE_BYTES: Final = 256 * 1024
"""The number of bytes of a file that are sent at a time."""


class ResultFilePort(Protocol):
    """The files of retained results. Each method raises a CallError if the file does not exist or cannot be read."""

    async def find(self, principal: Principal, handle: str) -> RetainedFile: ...

    async def read_piece(self, principal: Principal, handle: str, offset: int, size: int) -> bytes: ...


class ResultParts:
    """The files that answers to all principals name."""

    def __init__(self, files: ResultFilePort, url: Callable[[], str | None]) -> None:
        """``url``: the URL at which clients reach this port; if it is unknown (None), long files are not linked."""
        self._files = files
        self.url = url

    async def parts(self, principal: Principal, agent: str, handles: Sequence[str]) -> list[dict[str, Any]]:
        """The parts of the retained results with these handles: short ones with their content, long ones with their
        URL. Missing and expired ones have no part.
        """
        parts = []
        for handle in handles:
            try:
                part = await self._part(principal, agent, handle)
            except CallError:
                continue  # the text is not a handle, or the result has expired
            if part is not None:
                parts.append(part)
        return parts

    async def _part(self, principal: Principal, agent: str, handle: str) -> dict[str, Any] | None:
        file = await self._files.find(principal, handle)
        if file.size <= MAX_INLINE_BYTES:
            content = await self._files.read_piece(principal, handle, 0, MAX_INLINE_BYTES)
            return inline_part(handle, file.extension, content)
        base = self.url()
        return None if base is None else linked_part(handle, file.extension, f"{base.rstrip('/')}{AGENTS_PATH}/{agent}")

    async def send(self, principal: Principal, handle: str, send: Send) -> None:
        """Answers a request for a file.

        Raises:
            CallError: it does not exist or cannot be read; nothing was sent.
        """
        file = await self._files.find(principal, handle)
        piece = await self._files.read_piece(principal, handle, 0, PIECE_BYTES)
        name = file_name_of(handle, file.extension)
        headers = [
            (b"content-type", media_type_of(file.extension).encode()),
            (b"content-length", str(file.size).encode()),
            (b"content-disposition", f'attachment; filename="{name}"'.encode()),
            (b"x-content-type-options", b"nosniff"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sent = 0
        while True:
            sent += len(piece)
            more = bool(piece) and sent < file.size
            await send({"type": "http.response.body", "body": piece, "more_body": more})
            if not more:
                return
            try:
                piece = await self._files.read_piece(principal, handle, sent, PIECE_BYTES)
            except CallError:
                return  # deleted meanwhile: the response ends before its announced length
