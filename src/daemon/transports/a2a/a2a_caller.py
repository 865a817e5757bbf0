"""The sender of an A2A request."""

from typing import Final

import msgspec

from ....protocol.authorization import Authorization
from ....protocol.tool_call import ClientInfo, Principal

TRANSPORT: Final = "a2a"
"""The transport of the sessions of A2A, in the audit."""


class A2ACaller(msgspec.Struct, frozen=True):
    """The sender of a request, and the agent to which it was sent."""

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
    """Whether the agent answers waiting clients with messages."""

    @property
    def principal(self) -> Principal:
        return self.access.principal
