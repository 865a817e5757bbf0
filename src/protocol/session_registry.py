"""The registry of sessions: which connection holds each session, and which sessions are idle. Pure: callers pass the
time.

One connection at a time, the *holder*, holds a session. A session with a resume key outlives its connections: the key
finds it again, for its principal only.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .session_calls import SessionCalls

H = TypeVar("H")


def hash_key(resume_key: str) -> bytes:
    """Returns the hash of a resume key for storage. Keys have 256 random bits, so one round of a plain hash is
    enough.
    """
    return hashlib.sha256(resume_key.encode(errors="surrogatepass")).digest()


@dataclass(slots=True, eq=False, kw_only=True)
class SessionState(Generic[H]):
    """One session: its principal, its calls and its holder."""

    id: str
    principal_name: str
    calls: SessionCalls
    key_hash: bytes | None
    """The hash of the resume key; None: the session ends with its connection."""
    holder: H | None = None
    detached_at: float | None = None
    """The time at which the last holder detached; None while the session is held."""
    connection_number: int = 0
    """The highest number of a connection that resumed the session. In memory only: a session that was not in memory has
    no holder that a late connection could supersede.
    """

    @property
    def resumable(self) -> bool:
        return self.key_hash is not None

    def overtaken(self, number: int | None) -> bool:
        """Whether a later connection of the client resumed the session before this one. Otherwise remembers the number;
        a connection without a number, of an older client, is never overtaken.
        """
        if number is None:
            return False
        if number <= self.connection_number:
            return True
        self.connection_number = number
        return False

    @property
    def ended(self) -> bool:
        """Whether the holder has detached and the session cannot be resumed."""
        return self.detached_at is not None and not self.resumable


S = TypeVar("S", bound=SessionState[Any])


class SessionRegistry(Generic[S, H]):
    """The sessions in memory, by id and by the hash of their keys."""

    def __init__(self) -> None:
        self._all: dict[str, S] = {}
        self._by_key: dict[bytes, S] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[S]:
        return iter(list(self._all.values()))

    def add(self, session: S) -> None:
        """Adds a session: a new one, or one restored from the disk."""
        self._all[session.id] = session
        if session.key_hash is not None:
            self._by_key[session.key_hash] = session

    def by_key(self, key_hash: bytes, principal_name: str) -> S | None:
        """Returns the session of this key if it is the principal's."""
        session = self._by_key.get(key_hash)
        return session if session is not None and session.principal_name == principal_name else None

    def attach(self, session: S, holder: H) -> H | None:
        """Makes ``holder`` the session's holder; returns the previous one, if any."""
        superseded = session.holder
        session.holder, session.detached_at = holder, None
        return superseded

    def detach(self, session: S, holder: H, now: float) -> bool:
        """Detaches a holder; a session without a key ends. Returns False if another holder had taken over before."""
        if session.holder is not holder:
            return False
        session.holder, session.detached_at = None, now
        if not session.resumable:
            self.remove(session)
        return True

    def idle(self, now: float, window_s: float) -> list[S]:
        """Returns the sessions without a holder for ``window_s`` seconds and without running calls."""
        return [
            session
            for session in self._all.values()
            if session.detached_at is not None and now - session.detached_at >= window_s and not len(session.calls)
        ]

    def remove(self, session: S) -> None:
        """Removes a session that has ended or is persisted."""
        session.calls.end()
        self._all.pop(session.id, None)
        if session.key_hash is not None:
            self._by_key.pop(session.key_hash, None)
