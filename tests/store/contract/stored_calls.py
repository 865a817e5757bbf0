"""Entries of the journal for tests of the store's parts."""

import time
from typing import Any

from toold.store import CallEnd, CallRow, CallStart, DetachedRequest, SessionRow, Store, StoredCall, UnstartedCall

KEY_HASH = b"hash of the key"


class Calls:
    """Makes the entries of one principal's session ``s-1``. Request keys identify calls."""

    def __init__(self, session: str = "s-1", principal: str = "ann", epoch: str = "e0") -> None:
        self.principal = principal
        self.epoch = epoch
        self.session = SessionRow(
            id=session,
            key_hash=KEY_HASH if session == "s-1" else session.encode(),
            principal=principal,
            label="a label",
            toolset="standard",
            opened_at=time.time(),
        )

    def row(self, key: str, **fields: Any) -> CallRow:
        values: dict[str, Any] = {
            "id": f"{self.epoch}-{key}",
            "started_at": time.time(),
            "transport": "websocket",
            "principal": self.principal,
            "session_id": self.session.id,
            "session_label": "a label",
            "client": "a client",
            "request_id": f'"{key}"',
            "tool": "chat",
            "outcome": "ok",
            "latency_ms": 1.5,
        }
        return CallRow(**(values | fields))

    def starts(self, key: str = "a", **fields: Any) -> CallStart:
        values: dict[str, Any] = {
            "session_id": self.session.id,
            "request_key": key,
            "echo_id": False,
            "arguments_hash": f"arguments of {key}".encode(),
            "row": self.row(key, outcome="OUTCOME_UNKNOWN"),
        }
        return CallStart(**(values | fields))

    def child(self, run: str, name: str, tool: str = "echo", **fields: Any) -> CallStart:
        """The start of a child call of a run."""
        row = self.row(name, id=f"{run}/{name}", tool=tool, outcome="OUTCOME_UNKNOWN")
        return self.starts(name, session_id=run, child=True, row=row, **fields)

    def detached(self, key: str = "d", **fields: Any) -> CallStart:
        """The start of a detached call."""
        request = DetachedRequest(arguments=b'{"a": 1}', client=b'"cli"', deadline_at=time.time() + 600, **fields)
        row = self.row(key, tool="deep", outcome="OUTCOME_UNKNOWN")
        return self.starts(key, row=row, detached=request, orchestration=True)

    def ends(self, key: str = "a", result: bytes | None = b'{"text": "done"}', **fields: Any) -> CallEnd:
        values: dict[str, Any] = {
            "session_id": self.session.id,
            "request_key": key,
            "result": result,
            "at": time.time(),
            "row": self.row(key),
        }
        return CallEnd(**(values | fields))

    def child_ends(self, run: str, name: str, result: bytes | None = b"{}", **fields: Any) -> CallEnd:
        row = self.row(name, id=f"{run}/{name}", **fields)
        return self.ends(name, result, session_id=run, row=row)

    def ends_unstarted(self, key: str = "a", result: bytes | None = b'{"error": {}}') -> CallEnd:
        unstarted = UnstartedCall(echo_id=True, arguments_hash=f"arguments of {key}".encode())
        return self.ends(key, result, unstarted=unstarted, row=self.row(key, outcome="CANCELLED", executed="no"))

    def local(self, key: str = "l", result: bytes = b'{"text": "local"}', **fields: Any) -> StoredCall:
        values: dict[str, Any] = {
            "session_id": self.session.id,
            "request_key": key,
            "echo_id": False,
            "tool": "echo",
            "arguments_hash": b"h",
            "local": True,
            "state": "done",
            "result": result,
            "at": time.time(),
        }
        return StoredCall(**(values | fields))


async def stored(store: Store, key_hash: bytes = KEY_HASH) -> dict[str, tuple[str, bytes | None]]:
    """The calls of a session: key → state and result."""
    session = await store.sessions.find_by_key_hash(key_hash)
    assert session is not None
    return {call.request_key: (call.state, call.result) for call in session.calls}
