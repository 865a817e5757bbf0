"""The label that a client of the older revisions is given with ``initialize``, and sends along from then on. Pure.

It is their ``Mcp-Session-Id``, and yet no session: nothing is kept for it (decision 30). It says whose calls are whose,
in the logs and where one of them is cancelled by its JSON-RPC id, which many clients count from 1.
"""

import re
from secrets import token_hex
from typing import Final

from ....protocol.tool_call import ClientInfo

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
