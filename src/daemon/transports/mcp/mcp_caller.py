"""Who a message is from, and what came with it."""

import msgspec
from starlette.types import Receive

from ....protocol.authorization import Authorization
from ....protocol.mcp.request_envelope import RequestEnvelope
from ....protocol.tool_call import ClientInfo, Principal
from .http_io import EventStream


class McpCaller(msgspec.Struct, frozen=True):
    """The sender of one message."""

    access: Authorization
    toolset: str
    label: str
    client: ClientInfo
    envelope: RequestEnvelope
    labelled: bool
    """The label came from the client: it names the sender of its other messages too."""
    size: int
    """Bytes of the message."""
    receive: Receive
    """By which it is noticed that the client hangs up."""
    stream: EventStream | None
    """Where to tell something before the answer; None where the client takes none, or sent a batch."""

    @property
    def principal(self) -> Principal:
        return self.access.principal
