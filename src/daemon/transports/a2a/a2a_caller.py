"""Who sent a request of A2A."""

from typing import Final

import msgspec

from ....protocol.authorization import Authorization
from ....protocol.tool_call import ClientInfo, Principal

TRANSPORT: Final = "a2a"
"""The transport of the sessions of A2A, in the audit."""


class A2ACaller(msgspec.Struct, frozen=True):
    """Who sent a request, and to which agent."""

    access: Authorization
    toolset: str
    agent: str
    client: ClientInfo
    traceparent: str | None
    size: int
    """The size of the request in bytes."""
    origin: str = ""
    """The scheme and host of the request."""
    by_message: bool = False
    """Whether the agent answers clients that wait by messages."""

    @property
    def principal(self) -> Principal:
        return self.access.principal
