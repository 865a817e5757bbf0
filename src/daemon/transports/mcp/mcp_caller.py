"""The sender of a message, and the session labels of the older revisions.

``initialize`` returns a label as ``Mcp-Session-Id``, which the client repeats. The label is not a session: nothing is
stored for it (decision 30). It identifies the client in logs, and when the client cancels a call by its JSON-RPC id,
because many clients count these ids from 1.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import count
from secrets import randbits, token_hex
from typing import Final, Protocol

import msgspec
from starlette.types import Receive

from ....protocol.authorization import Authorization
from ....protocol.mcp.request_envelope import RequestEnvelope
from ....protocol.questions.client_question import QUESTION_KINDS, QuestionKind, known_kinds
from ....protocol.tool_call import ClientInfo, Principal
from ....tools import ResultText
from ..http_io import EventStream


class Unsent(Protocol):
    """An answer that counts as unread until it is sent."""

    def close(self) -> None: ...


class McpCaller(msgspec.Struct, frozen=True):
    """The sender of one message."""

    access: Authorization
    toolset: str
    label: str
    client: ClientInfo
    envelope: RequestEnvelope
    labelled: bool
    """Whether the client sent the label. If so, the label also identifies the client's other messages."""
    size: int
    """The size of the message in bytes."""
    receive: Receive
    """Reports that the client disconnects."""
    stream: EventStream | None
    """For events before the answer; None if the client does not accept them, or sent a batch."""
    unsent: "list[Unsent]"
    """Closed when the answers to all messages of the POST have been sent or will not be sent."""

    result_text: ResultText | None = None
    """The form of conversational answers that the client requested in a header."""
    traceparent: str | None = None
    """The header of this name, as sent."""

    @property
    def principal(self) -> Principal:
        return self.access.principal


SESSION_HEADER: Final = "mcp-session-id"
RESULT_TEXT_HEADER: Final = "toold-result-text"

_LABEL: Final = re.compile(r"([A-Za-z0-9_-]{0,40})-[0-9a-f]{16}(?:([0-9a-f]{2})(?:-([0-9a-f]{8}))?)?")
_MAX_LABEL_CHARS: Final = 68
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_CHARS: Final = 36
_REQUEST_NUMBERS: Final = count(randbits(48))
"""The prefix of the labels of requests without one; it differs between processes."""


class ClientLabel(msgspec.Struct, frozen=True):
    """The information about its client that a label contains."""

    client: ClientInfo
    """The part of its name that the label contains."""
    answers: tuple[QuestionKind, ...]
    """The kinds of questions that the client answers."""
    node: str
    """The mark of the node that has the client's notifications; empty without a cluster."""


def make_label(client: ClientInfo, answers: Iterable[str] = (), node: str = "") -> str:
    """Returns a label of up to 64 characters that begins with the client's name and ends with the kinds of questions
    that the client answers, and in a cluster with the mark of the ``node`` that has its notifications.
    """
    bits = sum(1 << QUESTION_KINDS.index(kind) for kind in known_kinds(answers))
    return f"{_name_of(client.name)}-{token_hex(8)}{bits:02x}" + (f"-{node}" if node else "")


def request_label(client: ClientInfo) -> str:
    """Returns a label for one request of a client without a label. The client does not see it."""
    return f"{_name_of(client.name)}-{next(_REQUEST_NUMBERS):016x}"


def read_label(value: str) -> ClientLabel | None:
    """Reads a label; None if it does not have the format of ``make_label``."""
    return _read_label(value) if len(value) <= _MAX_LABEL_CHARS else None


@lru_cache(maxsize=1024)
def _read_label(value: str) -> ClientLabel | None:
    """Cached: a client repeats its label with each request."""
    match = _LABEL.fullmatch(value)
    if match is None:
        return None
    bits = int(match[2], 16) if match[2] else 0
    answers = tuple(kind for index, kind in enumerate(QUESTION_KINDS) if bits >> index & 1)
    return ClientLabel(ClientInfo(match[1]), answers, match[3] or "")


@lru_cache(maxsize=256)
def _name_of(client_name: str) -> str:
    return _FOREIGN.sub("-", client_name)[:_NAME_CHARS] or "mcp"
