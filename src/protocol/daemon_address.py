"""How a client finds the daemon on its machine: the state directory and the files that both sides know. No I/O."""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import platformdirs

from .home_directory import expand_home

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8079
DEFAULT_HTTP_PORT: Final = 8080

CONFIG_FILE: Final = "toold.toml"
"""The settings file, in the directory where a daemon starts or in the state directory."""
CONFIGURATION_REFUSED: Final = "the new configuration is refused; the old one stays in effect"
"""The beginning of a problem that the daemon's health reports while its settings file is invalid."""
TOKEN_FILE: Final = "token"  # noqa: S105 - a file's name
"""In the state directory, mode 0600: the daemon's token on one line."""
LOCK_FILE: Final = "daemon.lock"
"""In the state directory: locked (``flock``) while a daemon runs; contains its pid. The lock ends with the process, so
a crash leaves nothing to clean up."""
ADDRESS_FILE: Final = "daemon.json"
"""In the state directory while a daemon runs: a ``DaemonAddress``."""

SHUTDOWN_MARGIN_S: Final = 20.0
"""A stopping daemon exits at most this long after its grace period. The final frames, closing the connections, the
SDKs' last calls and the last audit rows each have some seconds of this time.
"""


class DaemonAddress(msgspec.Struct, frozen=True):
    """Where the running daemon listens. The daemon writes the file when it starts to listen and when it begins to stop,
    and removes it at the end.

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
    """The time that running calls have to end at shutdown."""
    stopping: bool = False
    """Whether the daemon is shutting down. Another SIGTERM would end the grace period."""

    @property
    def url(self) -> str:
        """The WebSocket URL."""
        return websocket_url(connectable(self.host), self.port, tls=self.tls)

    @property
    def http_url(self) -> str:
        """The URL of the HTTP port."""
        return http_url(connectable(self.host), self.http_port)


def http_url(host: str, port: int) -> str:
    """Returns ``http://host:port/``, with an IPv6 address in brackets."""
    return f"http://{_bracketed(host)}:{port}/"


def websocket_url(host: str, port: int, *, tls: bool = False, path: str = "/") -> str:
    """Returns ``ws://host:port/``, with an IPv6 address in brackets."""
    return f"{'wss' if tls else 'ws'}://{_bracketed(host)}:{port}{path}"


def is_loopback(host: str) -> bool:
    """Whether ``host`` is reachable from this machine only: 127.0.0.0/8, ``::1`` or ``localhost``."""
    ip = ip_address(host)
    return host.lower() == "localhost" if ip is None else ip.is_loopback


def is_wildcard(host: str) -> bool:
    """Whether ``host`` means all addresses of this machine."""
    ip = ip_address(host)
    return ip is not None and ip.is_unspecified


def connectable(host: str) -> str:
    """Returns the host to connect to on this machine for a server that listens on ``host``: loopback for a wildcard."""
    if not is_wildcard(host):
        return host
    return "::1" if ":" in host else "127.0.0.1"


def ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parses ``host`` as an IP address; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def default_state_dir(env: Mapping[str, str]) -> Path:
    """Returns ``TOOLD_STATE_DIR``, or the platform's state directory for toold."""
    named = env.get("TOOLD_STATE_DIR")
    return expand_home(named) if named else Path(platformdirs.user_state_dir("toold", appauthor=False))


encode_address = msgspec.json.Encoder().encode
decode_address = msgspec.json.Decoder(DaemonAddress).decode
"""JSON → ``DaemonAddress``. Raises ``msgspec.DecodeError`` (or its subclass ``ValidationError``)."""
