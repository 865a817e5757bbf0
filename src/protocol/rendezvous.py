"""Where a client finds the daemon on its machine: the state folder and the files that both sides know. No I/O here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import platformdirs

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8079
DEFAULT_HTTP_PORT: Final = 8080

TOKEN_FILE: Final = "token"  # noqa: S105 - a file's name
"""In the state folder, mode 0600: the token, one line."""
ADDRESS_FILE: Final = "daemon.json"
"""In the state folder while a daemon runs: an ``Address``."""


class Address(msgspec.Struct, frozen=True):
    """Where the running daemon listens; written once it does, removed when it stops."""

    pid: int
    host: str
    port: int
    http_port: int
    tls: bool
    auth: bool
    version: str

    @property
    def url(self) -> str:
        return websocket_url(self.host, self.port, tls=self.tls)


def websocket_url(host: str, port: int, *, tls: bool = False) -> str:
    """``ws://host:port/``, an IPv6 address in brackets."""
    shown = f"[{host}]" if ":" in host else host
    return f"{'wss' if tls else 'ws'}://{shown}:{port}/"


def default_state_dir(env: Mapping[str, str]) -> Path:
    """``TOOLD_STATE_DIR``, or the platform's state folder for toold."""
    named = env.get("TOOLD_STATE_DIR")
    return Path(named).expanduser() if named else Path(platformdirs.user_state_dir("toold", appauthor=False))


encode_address = msgspec.json.Encoder().encode
decode_address = msgspec.json.Decoder(Address).decode
"""JSON → ``Address``. Raises ``msgspec.DecodeError`` (``ValidationError`` included) for anything else."""
