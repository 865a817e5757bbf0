"""Where a client finds the daemon on its machine: the state directory and the files that both sides know. No I/O
here.
"""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import platformdirs

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8079
DEFAULT_HTTP_PORT: Final = 8080

TOKEN_FILE: Final = "token"  # noqa: S105 - a file's name
"""In the state directory, mode 0600: the token, one line."""
LOCK_FILE: Final = "daemon.lock"
"""In the state directory, locked (``flock``) while a daemon runs, whose pid it has. The lock goes with its process, so
a crash leaves nothing to clean up."""
ADDRESS_FILE: Final = "daemon.json"
"""In the state directory while a daemon runs: an ``DaemonAddress``."""

ENDING_S: Final = 20.0
"""A daemon that was told to stop has ended so long after its grace period at the latest, whatever hangs: its farewells,
closing the connections, the SDKs' last calls and the audit's last rows each have some seconds of it."""


class DaemonAddress(msgspec.Struct, frozen=True):
    """Where the running daemon listens; written once it does, removed when it stops.

    ``host`` may be a wildcard such as ``0.0.0.0``; the URLs name a host that can be connected to.
    """

    pid: int
    host: str
    port: int
    http_port: int
    tls: bool
    auth: bool
    version: str
    grace_period_s: float = 10.0
    """How long running calls have to end once it is told to stop."""

    @property
    def url(self) -> str:
        """The WebSocket's."""
        return websocket_url(connectable(self.host), self.port, tls=self.tls)

    @property
    def http_url(self) -> str:
        """The HTTP side port's."""
        return f"http://{_bracketed(connectable(self.host))}:{self.http_port}/"


def websocket_url(host: str, port: int, *, tls: bool = False, path: str = "/") -> str:
    """``ws://host:port/``, an IPv6 address in brackets."""
    return f"{'wss' if tls else 'ws'}://{_bracketed(host)}:{port}{path}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on ``host``: 127.0.0.0/8, ``::1`` or ``localhost``."""
    ip = ip_address(host)
    return host.lower() == "localhost" if ip is None else ip.is_loopback


def connectable(host: str) -> str:
    """Where to connect to reach, on this machine, what listens on ``host``: for a wildcard, loopback."""
    ip = ip_address(host)
    if ip is None or not ip.is_unspecified:
        return host
    return "127.0.0.1" if ip.version == 4 else "::1"


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that ``host`` spells; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def default_state_dir(env: Mapping[str, str]) -> Path:
    """``TOOLD_STATE_DIR``, or the platform's state directory for toold."""
    named = env.get("TOOLD_STATE_DIR")
    return Path(named).expanduser() if named else Path(platformdirs.user_state_dir("toold", appauthor=False))


encode_address = msgspec.json.Encoder().encode
decode_address = msgspec.json.Decoder(DaemonAddress).decode
"""JSON → ``DaemonAddress``. Raises ``msgspec.DecodeError`` (``ValidationError`` included) for anything else."""
