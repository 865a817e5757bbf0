"""Sends a server the capabilities of each call's client. Importing this module takes a second, because of the SDK.

In the stateless revisions, each request names its client's capabilities. The SDK names the session's capabilities.
Here, a request on behalf of a call names those of the call's client, so that a server asks only questions that the
client answers.
"""

from types import TracebackType
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from ...protocol.mcp.request_envelope import CAPABILITIES_KEY
from .server_requests import ServerRequests
from .upstream_http import current_exchange


class CapabilityStream:
    """The SDK's messages for a server. Implements the SDK's ``WriteStream``."""

    def __init__(self, sending: Any, requests: ServerRequests) -> None:
        """``requests`` are the server's requests that the messages answer."""
        self._sending = sending
        self._requests = requests

    def __repr__(self) -> str:
        return f"<CapabilityStream to {self._sending!r}>"

    async def send(self, item: SessionMessage) -> None:
        """Sends a message, in the task of its call."""
        exchange = current_exchange.get()
        if exchange is not None and exchange.questions is not None and isinstance(item.message, JSONRPCRequest):
            params = item.message.params
            meta = None if params is None else params.get("_meta")
            if params is not None and isinstance(meta, dict) and CAPABILITIES_KEY in meta:
                params["_meta"] = {**meta, CAPABILITIES_KEY: exchange.questions.capabilities}
        try:
            await self._sending.send(item)
        finally:
            if isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._requests.answered(item.message.id)

    async def aclose(self) -> None:
        await self._sending.aclose()

    async def __aenter__(self) -> Self:
        await self._sending.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._sending.__aexit__(kind, error, traceback)
