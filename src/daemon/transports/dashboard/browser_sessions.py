"""The browsers that are signed in to the dashboard, and the links that sign one in.

The cookie contains a random secret. The file has only the hash of this secret, and the hash of the token with which the
browser signed in. So the file cannot be used to sign in, and a session ends when its token is revoked or expires.
Sessions survive a restart of the daemon.

In a cluster, each browser is signed in at one node, whose name is in its cookie and its link; the other nodes relay to
this node.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog

from ...dispatch import named_token

SESSIONS_FILE: Final = "browser_sessions.json"
SESSION_S: Final = 7 * 86_400.0
"""How long a browser stays signed in."""
MAX_SESSIONS: Final = 500
"""Beyond this number, the oldest browser is signed out."""
MAX_SESSIONS_PER_TOKEN: Final = 50
"""Beyond this number, the token's oldest browser is signed out, so that no principal can sign out browsers of
others."""
LINK_S: Final = 60.0
"""How long a sign-in link is valid; browsers open it at once."""
MAX_LINKS: Final = 16
_SECRET_BYTES: Final = 32

_log = structlog.get_logger(__name__)


class BrowserSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One browser that is signed in. Times are Unix times in seconds."""

    secret_sha256: str
    token_sha256: str
    expires_at: float


class BrowserSessions:
    """The sessions in the file ``path``. Creating and ending one writes the file, which blocks for milliseconds."""

    def __init__(
        self, path: Path, *, node: str = "", cookie: str | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """If there are several nodes, ``node`` is the name of this one, and ``cookie`` the cookie's name on all of
        them."""
        self._path = path
        self._node = node
        self._cookie = cookie
        self._clock = clock
        self._sessions = {session.secret_sha256: session for session in self._read()}
        self._links: dict[str, tuple[str, float]] = {}
        """The hash of a link's secret → the hash of its token, and when the link expires."""

    def __repr__(self) -> str:
        return f"<BrowserSessions {len(self._sessions)}>"

    def __len__(self) -> int:
        """The number of signed-in browsers."""
        now = self._clock()
        return sum(session.expires_at > now for session in self._sessions.values())

    def cookie_name(self, port: int) -> str:
        """The name of the cookie for a server on this port. All ports of a machine share their cookies, so each daemon
        needs a different name.
        """
        return self._cookie or f"toold_{port}"

    def create(self, token_sha256: str) -> str:
        """Sign a browser in with a token; returns the secret for its cookie."""
        now = self._clock()
        secret = self._new_secret()
        session = BrowserSession(secret_sha256=_hash(secret), token_sha256=token_sha256, expires_at=now + SESSION_S)
        valid = sorted(
            (other for other in self._sessions.values() if other.expires_at > now), key=lambda other: other.expires_at
        )
        own = [other for other in valid if other.token_sha256 == token_sha256]
        excess = {other.secret_sha256 for other in own[: max(0, len(own) - MAX_SESSIONS_PER_TOKEN + 1)]}
        kept = [other for other in valid if other.secret_sha256 not in excess][-(MAX_SESSIONS - 1) :]
        self._sessions = {other.secret_sha256: other for other in [*kept, session]}
        self._write()
        return secret

    def find(self, secret: str) -> BrowserSession | None:
        """The session of a cookie; None if it has ended."""
        session = self._sessions.get(_hash(secret))
        return None if session is None or session.expires_at <= self._clock() else session

    def end(self, secret: str) -> None:
        """Sign a browser out."""
        if self._sessions.pop(_hash(secret), None) is not None:
            self._write()

    def create_link(self, token_sha256: str) -> str:
        """Returns the secret of a link that signs one browser in, once, within ``LINK_S``."""
        now = self._clock()
        valid = [(key, link) for key, link in self._links.items() if link[1] > now]
        secret = self._new_secret()
        self._links = dict([*valid[-(MAX_LINKS - 1) :], (_hash(secret), (token_sha256, now + LINK_S))])
        return secret

    def redeem_link(self, secret: str) -> str | None:
        """Returns the hash of the token for which a link was created, and ends the link; None if it has ended."""
        token_sha256, expires_at = self._links.pop(_hash(secret), ("", 0.0))
        return token_sha256 if expires_at > self._clock() else None

    def _new_secret(self) -> str:
        return named_token(self._node, secrets.token_urlsafe(_SECRET_BYTES))

    def _read(self) -> list[BrowserSession]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[BrowserSession])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("all browsers are signed out: their file cannot be read", path=str(self._path), why=str(error))
            return []

    def _write(self) -> None:
        unfinished = self._path.with_suffix(".new")
        try:
            unfinished.touch(mode=0o600)
            unfinished.write_bytes(msgspec.json.encode(list(self._sessions.values())))
            unfinished.replace(self._path)
        except OSError as error:
            _log.warning("browsers will be signed out by a restart: their file cannot be written", why=str(error))


def csrf_token(secret: str) -> str:
    """The token in each form of a session's pages, which pages of other sites cannot know."""
    return hmac.new(secret.encode(), b"csrf", hashlib.sha256).hexdigest()


def is_csrf_token(secret: str, presented: str) -> bool:
    return hmac.compare_digest(csrf_token(secret).encode(), presented.encode(errors="surrogatepass"))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
