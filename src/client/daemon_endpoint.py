"""Where the daemon is and which token it takes: what the caller names, else the environment, else the state
directory.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ..protocol.daemon_address import (
    ADDRESS_FILE,
    DEFAULT_HOST,
    DEFAULT_PORT,
    TOKEN_FILE,
    DaemonAddress,
    connectable,
    decode_address,
    default_state_dir,
    ip_address,
    is_loopback,
    websocket_url,
)

_log = logging.getLogger(__name__)

_PATH: Final = re.compile(r"(/[\w.~%-]*)*", re.ASCII)

HOST_VARIABLES: Final = ("TOOLD_HOST", "EXAI_WS_HOST")
PORT_VARIABLES: Final = ("TOOLD_PORT", "EXAI_WS_PORT")
TOKEN_VARIABLES: Final = ("TOOLD_TOKEN", "EXAI_WS_TOKEN")
"""In the order in which they count; the second names are those of older scripts."""


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """What the caller named; None leaves it to the environment and the state directory.

    ``host`` may be a whole address such as ``wss://tools.example:8443/ws``.
    """

    host: str | None = None
    port: int | None = None
    token: str | None = field(default=None, repr=False)
    tls: bool | None = None


@dataclass(frozen=True, slots=True)
class Announcement:
    """What the daemon of this machine left in its state directory: its address while it runs, and its token."""

    address: DaemonAddress | None = None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class DaemonEndpoint:
    """Where to connect, and with what."""

    host: str
    port: int
    tls: bool
    token: str | None = field(default=None, repr=False)
    token_source: str = field(default="", compare=False)
    """Where the token came from and what to do where it is refused, a sentence."""
    unannounced: bool = field(default=False, compare=False)
    """Nobody named the address, and no daemon announced one: whoever listens there must not see the state directory's
    token, and there is no other."""
    path: str = "/"
    """The daemon takes any; a proxy before it may want its own."""

    @property
    def url(self) -> str:
        return websocket_url(self.host, self.port, tls=self.tls, path=self.path)


def resolve(wish: EndpointRequest, env: Mapping[str, str], announced: Announcement) -> DaemonEndpoint:
    """Decide where to connect: the wish before the environment before the announcement before 127.0.0.1:8079.

    The announcement speaks for this machine: its port and TLS count where the host named is this machine and the
    port named is no other, and its token goes to no other machine, nor to an address that nobody named.

    Raises:
        ValueError: a host or port cannot be one; the message names where it came from.
    """
    host, url_port, url_tls, path = _parse_host(wish.host or _first(env, HOST_VARIABLES))
    port = url_port or _explicit_port(wish.port) or _port_from(env)
    address = announced.address
    if address is not None and not _speaks_for(address, host, port):
        address = None
    guessed = address is None and host is None and port is None
    if host is None:
        host = address.host if address else DEFAULT_HOST
    host = connectable(host)
    if port is None:
        port = address.port if address else DEFAULT_PORT
    tls = next((said for said in (wish.tls, url_tls) if said is not None), address.tls if address else False)
    trusted = not guessed and (address is not None or is_loopback(host))
    token, source = _token(wish, env, announced.token if trusted else None)
    unannounced = guessed and token is None and announced.token is not None
    return DaemonEndpoint(host, port, tls, token, source, unannounced, path)


def _token(wish: EndpointRequest, env: Mapping[str, str], announced: str | None) -> tuple[str | None, str]:
    """The token and its source; ``announced`` is the state directory's, where it may be sent."""
    if wish.token:
        return wish.token, "The token that was sent is the one passed as token=."
    name = next((name for name in TOKEN_VARIABLES if env.get(name)), None)
    if name is not None:
        remedy = "correct it" if announced in {None, env[name]} else "unset it to use the state directory's"
        return env[name], f"The token that was sent is that of {name}; {remedy}."
    if announced is not None:
        return (
            announced,
            "The token that was sent is the state directory's; TOOLD_STATE_DIR names another daemon's directory.",
        )
    return None, "No token was sent: set TOOLD_TOKEN, or pass token=."


def local_token(env: Mapping[str, str]) -> str | None:
    """The token for this machine's daemon: the environment's, else the one in the state directory."""
    return _first(env, TOKEN_VARIABLES) or read_announcement(default_state_dir(env)).token


def read_announcement(state_dir: Path) -> Announcement:
    """What the state directory says now. What is missing or cannot be read counts as not there."""
    address = token = None
    try:
        address = decode_address((state_dir / ADDRESS_FILE).read_bytes())
    except FileNotFoundError:
        pass
    except (OSError, msgspec.DecodeError) as exc:
        _log.warning("%s is left out: %s", state_dir / ADDRESS_FILE, exc)
    try:
        token = (state_dir / TOKEN_FILE).read_text("utf-8", errors="replace").strip() or None
    except FileNotFoundError:
        pass
    except OSError as exc:
        _log.warning("%s is left out: %s", state_dir / TOKEN_FILE, exc)
    return Announcement(address, token)


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)


def _parse_host(named: str | None) -> tuple[str | None, int | None, bool | None, str]:
    """Host, port, TLS and path as far as the name says; a bare host says nothing of the others."""
    if not named:
        return None, None, None, "/"
    if "://" not in named:
        return _check_bare(named.removeprefix("[").removesuffix("]")), None, None, "/"
    try:
        parts = urlsplit(named)
        port = parts.port
    except ValueError as exc:
        raise ValueError(f"the host {named!r} is not an address: {exc}") from exc
    if parts.scheme not in {"ws", "wss"} or not parts.hostname or not _PATH.fullmatch(parts.path) or parts.query:
        raise ValueError(f"the host {named!r} is not an address such as wss://tools.example:8443/ws")
    tls = parts.scheme == "wss"
    return parts.hostname, port or (443 if tls else 80), tls, parts.path or "/"


def _check_bare(host: str) -> str:
    if ":" in host and ip_address(host) is None:
        raise ValueError(f"the host {host!r} is no address; name the port apart from it, or write ws://{host}/")
    if not re.fullmatch(r"[\w.:%-]{1,253}", host):
        raise ValueError(f"the host {host!r} is neither a name nor an address")
    return host


def _explicit_port(port: int | None) -> int | None:
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"port must be between 1 and 65535, not {port}")
    return port


def _port_from(env: Mapping[str, str]) -> int | None:
    """The port that the environment names; 0, a daemon's 'any free one', names none."""
    name = next((name for name in PORT_VARIABLES if env.get(name)), None)
    if name is None:
        return None
    text = env[name].strip()
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise ValueError(f"{name} must be a port between 1 and 65535, not {env[name]!r}")
    return int(text) or None


def _speaks_for(address: DaemonAddress, host: str | None, port: int | None) -> bool:
    here = host is None or host == address.host or is_loopback(connectable(host))
    return here and port in {None, address.port}
