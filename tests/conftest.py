"""For all tests: in CI nothing is skipped but what is named here, every process that is started hears Ctrl-C, an audit
row is made in one place, and so is damage.
"""

import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from toold.store import KEY_BYTES, CallRow

ALLOWED_SKIPS = ("root reads what permissions forbid", "systemd is not installed")
"""Reasons that hold in CI too, which runs as root in a container."""

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
# Examples are the same in each run, so that a change is blamed for what it changed; `--hypothesis-profile=default`
# draws new ones. How long one takes is the machine's matter.

_skips: Counter[str] = Counter()


def pytest_configure() -> None:
    """Shells have their background jobs ignore SIGINT, and whom a test starts would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two a processor: much of the time tests wait for the processes that they start."""
    return (os.cpu_count() or 1) * 2


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note why a test was skipped; with xdist this is told to the controller."""
    if report.skipped and isinstance(report.longrepr, tuple):
        _skips[str(report.longrepr[2]).removeprefix("Skipped: ")] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a skip that is not allowed fails the run."""
    if os.environ.get("CI") and any(not reason.startswith(ALLOWED_SKIPS) for reason in _skips):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many were skipped for which reason, and which of them CI does not take."""
    for reason, number in _skips.items():
        verdict = "" if reason.startswith(ALLOWED_SKIPS) else " - NOT ALLOWED IN CI"
        terminalreporter.line(f"{number} skipped: {reason}{verdict}")


@pytest.fixture(scope="session")
def row() -> Callable[..., CallRow]:
    """A function that makes a call's audit row, of ``echo`` unless said otherwise."""

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


@pytest.fixture(scope="session")
def audit_key() -> bytes:
    """The key of the audit's chain."""
    return b"k" * KEY_BYTES


@pytest.fixture(scope="session")
def damage() -> Callable[[Path, str], None]:
    """A function that overwrites the first page of a table in a database that is closed."""

    def overwrite(database: Path, table: str) -> None:
        with closing(sqlite3.connect(database)) as connection:
            asked = "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?"
            page, size = connection.execute(asked, (table,)).fetchone()
        with database.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)

    return overwrite
