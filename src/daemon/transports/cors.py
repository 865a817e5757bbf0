"""What a browser asks for before a page of an allowed site may call, and may read the answer (CORS).

A page sends its token itself, in ``Authorization``; cookies and the like are none of ours, so no answer allows for
credentials, and none is for every origin.
"""

from collections.abc import Iterable
from typing import Final

from starlette.types import Message, Send

_ALLOWED: Final = (
    (b"access-control-allow-methods", b"GET, POST"),
    (
        b"access-control-allow-headers",
        b"accept, authorization, content-type, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id",
    ),
    (b"access-control-max-age", b"600"),  # as long as an operator may wait for a changed setting to count
)
_EXPOSED: Final = (b"access-control-expose-headers", b"mcp-session-id, retry-after, www-authenticate")
"""What the page may read of an answer, beside its type and length."""
_VARY: Final = (b"vary", b"origin")


def is_preflight(method: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the browser asks, for a page that has yet to send its request."""
    return method == "OPTIONS" and any(name == b"access-control-request-method" for name, _ in headers)


async def answer_preflight(send: Send, origin: bytes) -> None:
    """The page of this origin may send what MCP has its clients send. No token is asked for: browsers send none yet."""
    headers = [(b"access-control-allow-origin", origin), *_ALLOWED, _VARY]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body"})


def shared_with(send: Send, origin: bytes) -> Send:
    """``send`` for answers that the page of this origin may read, errors included: it has to see what went wrong."""

    async def share(message: Message) -> None:
        if message["type"] == "http.response.start":
            allowed = (b"access-control-allow-origin", origin)
            message = {**message, "headers": [*message["headers"], allowed, _EXPOSED, _VARY]}
        await send(message)

    return share
