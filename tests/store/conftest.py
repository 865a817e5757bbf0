"""A store in a folder of its own, and rows to put in."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toold.store import CallRow, Retention, Store

MakeRow = Callable[..., CallRow]


@pytest.fixture
def row() -> MakeRow:
    """A function that makes a row, of ``echo`` unless said otherwise."""

    def make(**fields: Any) -> CallRow:
        plain: dict[str, Any] = {
            "id": "call-1",
            "started_at": time.time(),
            "transport": "websocket",
            "principal": "local",
            "session_id": "s-1",
            "session_label": "baseline-1",
            "client": "tests 1",
            "request_id": '"1"',
            "tool": "echo",
            "outcome": "ok",
            "latency_ms": 1.5,
        }
        return CallRow(**plain | fields)

    return make


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "toold.db"


@pytest.fixture
def open_store(database: Path) -> Callable[..., Store]:
    """A function that opens a store on ``database``; who opens it closes it."""

    def make(retention: Retention | None = None) -> Store:
        return Store(database, content=json.dumps, retention=retention or Retention())

    return make
