"""The sender of a message, and the session labels of the older revisions.

``initialize`` returns a label as ``Mcp-Session-Id``, which the client repeats. It is not a session: nothing is stored
for it (decision 30). It identifies the client in logs, and when it cancels a call by its JSON-RPC id, which many
clients count from 1.
"""

import re
from collections.abc import Iterable
from secrets import token_hex
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
    """Whether the client sent the label, so that it also identifies the sender of the client's other messages."""
    size: int
    """The size of the message in bytes."""
    receive: Receive
    """Reports that the client disconnects."""
    stream: EventStream | None
    """For events before the answer; None if the client does not accept them, or sent a batch."""
    unsent: "list[Unsent]"
    """Closed when the answers to all messages of the POST have been sent or will not be sent."""

    result_text: ResultText | None = None
    """The form of conversational answers that it requested in a header."""
    traceparent: str | None = None
    """The header of this name, as it was sent."""

    @property
    def principal(self) -> Principal:
        return self.access.principal


SESSION_HEADER: Final = "mcp-session-id"
RESULT_TEXT_HEADER: Final = "toold-result-text"

_LABEL: Final = re.compile(r"([A-Za-z0-9_-]{0,40})-[0-9a-f]{16}(?:([0-9a-f]{2})(?:-([0-9a-f]{8}))?)?")
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]+")


_NAME_CHARS: Final = 36


def make_label(client: ClientInfo, answers: Iterable[str] = (), node: str = "") -> str:
    """Returns a label of up to 64 characters that begins with the client's name and ends with the kinds of questions
    that the client answers, and in a cluster with the mark of the ``node`` where its notifications are.
    """
    bits = sum(1 << QUESTION_KINDS.index(kind) for kind in known_kinds(answers))
    return f"{_FOREIGN.sub('-', client.name)[:_NAME_CHARS] or 'mcp'}-{token_hex(8)}{bits:02x}" + (
        f"-{node}" if node else ""
    )


def is_label(value: str) -> bool:
    """Whether the value has the format of ``make_label``."""
    return _LABEL.fullmatch(value) is not None


def answers_of_label(label: str) -> tuple[QuestionKind, ...]:
    """Returns the kinds of questions that the client answers, from a valid label."""
    match = _LABEL.fullmatch(label)
    bits = int(match[2], 16) if match is not None and match[2] else 0
    return tuple(kind for index, kind in enumerate(QUESTION_KINDS) if bits >> index & 1)


def client_of_label(label: str) -> ClientInfo:
    """Returns the part of the client's name that the label contains."""
    match = _LABEL.fullmatch(label)
    return ClientInfo("" if match is None else match[1])


def node_of_label(label: str) -> str:
    """Returns the mark of the node in a label; empty if it has none."""
    match = _LABEL.fullmatch(label)
    return match[3] or "" if match is not None else ""
