"""Who a message is from, and what came with it."""

import re
from secrets import token_hex
from typing import Final

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


SESSION_HEADER: Final = "mcp-session-id"

_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{0,40}-[0-9a-f]{16}")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]+")


def make_label(client: ClientInfo) -> str:
    """A label of at most 64 characters that begins with the client's name."""
    return f"{_FOREIGN.sub('-', client.name)[:40] or 'mcp'}-{token_hex(8)}"


def is_label(value: str) -> bool:
    """Whether it is of the form that ``make_label`` gives."""
    return _LABEL.fullmatch(value) is not None


def client_of_label(label: str) -> ClientInfo:
    """What a label still says of the client."""
    return ClientInfo(label.rpartition("-")[0])
