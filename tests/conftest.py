"""For all tests: in CI nothing is skipped but what is named here, and every process that is started hears Ctrl-C."""

import os
import signal
from collections import Counter

import pytest

ALLOWED_SKIPS = ("root reads what permissions forbid", "systemd is not installed")
"""Reasons that hold in CI too, which runs as root in a container."""

_skips: Counter[str] = Counter()


def pytest_configure() -> None:
    """Shells have their background jobs ignore SIGINT, and whom a test starts would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
