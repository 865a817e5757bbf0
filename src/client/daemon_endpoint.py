"""Resolves the daemon's address and token: from the caller, else the environment, else the state directory."""

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
"""The variables in order of precedence. The second names are from older scripts."""


@dataclass(frozen=True, slots=True)
class EndpointRequest:
    """The caller's settings; None defers to the environment and the state directory.

    ``host`` may be a complete URL such as ``wss://tools.example:8443/ws``.
    """

    host: str | None = None
    port: int | None = None
    token: str | None = field(default=None, repr=False)
    tls: bool | None = None


@dataclass(frozen=True, slots=True)
class Announcement:
    """The daemon's announcement in its state directory: its address while it runs, and its token."""

    address: DaemonAddress | None = None
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class DaemonEndpoint:
    """The address and token to connect with."""

    host: str
    port: int
    tls: bool
    token: str | None = field(default=None, repr=False)
    token_source: str = field(default="", compare=False)
    """One sentence that says where the token came from, and what to do if it is rejected."""
    unannounced: bool = field(default=False, compare=False)
    """Whether the address is the unannounced default, and the only token is the state directory's, which must not be
    sent there.
    """
    path: str = "/"
    """The URL's path. The daemon accepts any path, but a proxy in front of it may require one."""

    @property
    def url(self) -> str:
        return websocket_url(self.host, self.port, tls=self.tls, path=self.path)


def resolve(request: EndpointRequest, env: Mapping[str, str], announced: Announcement) -> DaemonEndpoint:
    """Decides where to connect, in this order: request, environment, announcement, 127.0.0.1:8079.

    The announcement applies to this machine: its port and TLS are used only if the host is this machine and no other
    port is named. Its token is never sent to another machine, nor to the default address.

    Raises:
        ValueError: a host or port is invalid; the message names its origin.
    """
    host, url_port, url_tls, path = _parse_host(request.host or _first(env, HOST_VARIABLES))
    port = url_port or _explicit_port(request.port) or _port_from(env)
    address = announced.address
    if address is not None and not _applies_to(address, host, port):
        address = None
    guessed = address is None and host is None and port is None
    if host is None:
        host = address.host if address else DEFAULT_HOST
    host = connectable(host)
    if port is None:
        port = address.port if address else DEFAULT_PORT
    tls = next((choice for choice in (request.tls, url_tls) if choice is not None), address.tls if address else False)
    trusted = not guessed and (address is not None or is_loopback(host))
    token, source = _token(request, env, announced.token if trusted else None)
    unannounced = guessed and token is None and announced.token is not None
    return DaemonEndpoint(host, port, tls, token, source, unannounced, path)


def _token(request: EndpointRequest, env: Mapping[str, str], announced: str | None) -> tuple[str | None, str]:
    """Returns the token and its source; ``announced`` is the state directory's, if it may be sent."""
    if request.token:
        return request.token, "The token passed as token= was sent."
    name = next((name for name in TOKEN_VARIABLES if env.get(name)), None)
    if name is not None:
        remedy = "correct it" if announced in {None, env[name]} else "unset it to use the state directory's"
        return env[name], f"The token in {name} was sent; {remedy}."
    if announced is not None:
        return (
            announced,
            "The token in the state directory was sent; set TOOLD_STATE_DIR to use another daemon's.",
        )
    return None, "No token was sent: set TOOLD_TOKEN, or pass token=."


def local_token(env: Mapping[str, str]) -> str | None:
    """Returns the token for this machine's daemon: from the environment, else from the state directory."""
    return _first(env, TOKEN_VARIABLES) or read_announcement(default_state_dir(env)).token


def read_announcement(state_dir: Path) -> Announcement:
    """Reads the state directory; missing and unreadable files are ignored."""
    address = token = None
    try:
        address = decode_address((state_dir / ADDRESS_FILE).read_bytes())
    except FileNotFoundError:
        pass
    except (OSError, msgspec.DecodeError) as exc:
        _log.warning("%s is ignored: %s", state_dir / ADDRESS_FILE, exc)
    try:
        token = (state_dir / TOKEN_FILE).read_text("utf-8", errors="replace").strip() or None
    except FileNotFoundError:
        pass
    except OSError as exc:
        _log.warning("%s is ignored: %s", state_dir / TOKEN_FILE, exc)
    return Announcement(address, token)


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)


def _parse_host(named: str | None) -> tuple[str | None, int | None, bool | None, str]:
    """Returns host, port, TLS and path of a URL. A bare host has no port, no TLS setting and the path ``/``."""
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
        raise ValueError(f"the host {host!r} is not an address; pass the port separately, or use ws://{host}/")
    if not re.fullmatch(r"[\w.:%-]{1,253}", host):
        raise ValueError(f"the host {host!r} is neither a name nor an address")
    return host


def _explicit_port(port: int | None) -> int | None:
    if port is not None and not 1 <= port <= 65535:
        raise ValueError(f"port must be between 1 and 65535, not {port}")
    return port


def _port_from(env: Mapping[str, str]) -> int | None:
    """Returns the port in the environment; 0, a daemon's 'any free port', counts as none."""
    name = next((name for name in PORT_VARIABLES if env.get(name)), None)
    if name is None:
        return None
    text = env[name].strip()
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise ValueError(f"{name} must be a port between 1 and 65535, not {env[name]!r}")
    return int(text) or None


def _applies_to(address: DaemonAddress, host: str | None, port: int | None) -> bool:
    here = host is None or host == address.host or is_loopback(connectable(host))
    return here and port in {None, address.port}
