"""All sessions of a daemon: who holds each, who takes it over, which may leave memory. Pure: the clock is handed in.

A session is held by one connection at a time, the *holder*, whatever that is. One with a resume key outlives its
connections: the key finds it again, for the principal that it was made for and for nobody else.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .session_calls import SessionCalls

H = TypeVar("H")


def hash_key(resume_key: str) -> bytes:
    """What is kept of a resume key. Keys are 256 random bits, so that one round of a plain hash is enough."""
    return hashlib.sha256(resume_key.encode(errors="surrogatepass")).digest()


@dataclass(slots=True, eq=False, kw_only=True)
class SessionState(Generic[H]):
    """One session: whose it is, its calls, and who holds it."""

    id: str
    principal_name: str
    calls: SessionCalls
    key_hash: bytes | None
    """Of its resume key; None: it ends with its connection."""
    holder: H | None = None
    detached_at: float | None = None
    """When its last holder left; None while it is held."""

    @property
    def resumable(self) -> bool:
        return self.key_hash is not None

    @property
    def ended(self) -> bool:
        """Its holder left, and nobody can come back to it."""
        return self.detached_at is not None and not self.resumable


S = TypeVar("S", bound=SessionState[Any])


class SessionRegistry(Generic[S, H]):
    """The sessions that are in memory, by id and by the hash of their keys."""

    def __init__(self) -> None:
        self._all: dict[str, S] = {}
        self._by_key: dict[bytes, S] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[S]:
        return iter(list(self._all.values()))

    def add(self, session: S) -> None:
        """A new session, or one that was found again on the disk."""
        self._all[session.id] = session
        if session.key_hash is not None:
            self._by_key[session.key_hash] = session

    def by_key(self, key_hash: bytes, principal_name: str) -> S | None:
        """The session of this key, where it is this principal's."""
        session = self._by_key.get(key_hash)
        return session if session is not None and session.principal_name == principal_name else None

    def attach(self, session: S, holder: H) -> H | None:
        """Let a holder have the session; returns the one that had it until now, if any."""
        superseded = session.holder
        session.holder, session.detached_at = holder, None
        return superseded

    def detach(self, session: S, holder: H, now: float) -> bool:
        """A holder is gone. False where another had taken over before. A session without a key ends with it."""
        if session.holder is not holder:
            return False
        session.holder, session.detached_at = None, now
        if not session.resumable:
            self.remove(session)
        return True

    def idle(self, now: float, window_s: float) -> list[S]:
        """Sessions that nobody has held for so long and in which nothing runs."""
        return [
            session
            for session in self._all.values()
            if session.detached_at is not None and now - session.detached_at >= window_s and not len(session.calls)
        ]

    def remove(self, session: S) -> None:
        """The session is over, or what is to be known of it is on the disk."""
        session.calls.end()
        self._all.pop(session.id, None)
        if session.key_hash is not None:
            self._by_key.pop(session.key_hash, None)
