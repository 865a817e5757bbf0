"""Reads the parts of a request's head that the server needs. Pure."""

from functools import lru_cache
from typing import Final, NamedTuple

import httptools

_KEPT_BYTES: Final = 256
"""Longer targets are not kept."""
_READ: Final = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"expect", b"x-forwarded-for", b"x-forwarded-proto"}
)


class RequestHead(NamedTuple):
    """The headers that concern the connection."""

    body_bytes: int
    """The length of the body; 0 if it is chunked. The parser has checked the number."""
    expects_continue: bool
    of_proxy: bool
    """A proxy has added headers about the client."""

    @classmethod
    def of(cls, version: str, headers: list[tuple[bytes, bytes]]) -> "RequestHead | None":
        """Reads a head. Returns None if a proxy might understand the request differently than this lenient parser:
        HTTP/1.1 requires exactly one Host (RFC 9112, 3.2), and no transfer coding except chunked is accepted (6.1).
        """
        hosts = body_bytes = 0
        expects_continue = of_proxy = False
        for name, value in headers:
            if name not in _READ:
                continue
            if name == b"host":
                hosts += 1
            elif name == b"content-length":
                body_bytes = int(value)
            elif name == b"transfer-encoding":
                if value.lower() != b"chunked":
                    return None
            elif name == b"expect":
                expects_continue = expects_continue or value.lower() == b"100-continue"
            else:
                of_proxy = True
        if hosts == 1 if version == "1.1" else version == "1.0" and hosts <= 1:
            return cls(body_bytes, expects_continue, of_proxy)
        return None


def parse_target(target: bytes) -> tuple[bytes, bytes]:
    """The path of a request's target, encoded as it was sent, and its query.

    Raises:
        httptools.HttpParserInvalidURLError: the target is invalid.
    """
    return _parse_target.__wrapped__(target) if len(target) > _KEPT_BYTES else _parse_target(target)


@lru_cache(maxsize=256)
def _parse_target(target: bytes) -> tuple[bytes, bytes]:
    parts = httptools.parse_url(target)
    return parts.path, parts.query or b""
