"""Hooks and fixtures for all tests: process detection, skips that CI rejects, and audit rows."""

import gc
import inspect
import os
import resource
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import structlog
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from structlog.dev import ConsoleRenderer, plain_traceback
from tests.postgres_cluster import ROLES, Cluster, running_cluster
from toold.daemon.lifecycle import running
from toold.store import KEY_BYTES, CallRow
from toold.testing import daemon_under_test

ALLOWED_SKIPS = ("root reads what permissions forbid", "systemd is not installed", "Chromium is not installed")
"""Reasons that are valid in CI too, which runs as root in a container."""

settings.register_profile("same", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("fast", settings.get_profile("same"), max_examples=8)
settings.load_profile("same")
# Examples are the same in each run, so that a failure comes from the change under test. `--hypothesis-profile=default`
# draws new ones, and more; `make fuzz` tries millions of inputs. There is no deadline per example: it would depend on
# the machine's load. `make test-fast` tries fewer.

_skips: Counter[str] = Counter()


def _use_no_local_constants() -> None:
    """Keep hypothesis from trying the constants of all modules of the project.

    With them, a change of any module would change the examples of all tests. In a fresh checkout, each worker takes
    6 s of CPU time to collect them from two thousand modules.
    """
    none = Constants()
    providers._get_local_constants = lambda: none


def pytest_configure(config: pytest.Config) -> None:
    """Choose the hypothesis profile, restore SIGINT, leave the caller's home, and log plain tracebacks.

    Shells ignore SIGINT in background jobs, and the processes that tests start would inherit that.
    """
    _leave_home(config)
    if config.getoption("--hypothesis-profile", None) is None:
        _use_no_local_constants()
        if is_fast_run(config):
            settings.load_profile("fast")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # structlog's default renders the variables of each frame, which takes a second per exception.
    processors = structlog.get_config()["processors"]
    structlog.configure(
        processors=[*processors[:-1], ConsoleRenderer(colors=False, exception_formatter=plain_traceback)]
    )


_GC_THRESHOLD = 10_000
"""New objects between two garbage collections. With Python's 700, the tests spend a fifth of their CPU time in them."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Collect the tests without garbage collection, and exempt what they consist of from later ones.

    Ten thousand tests are millions of objects that live until the end. Searching them again and again for garbage took
    as long as everything else that collecting them does.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_GC_THRESHOLD)
        gc.enable()


_CONFIG_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_DIRS")
"""Variables that lead to a person's settings; so do all that begin with ``XDG_`` and end with ``_HOME``."""


def _leave_home(config: pytest.Config) -> None:
    """Give the tests and the processes that they start an empty home: they must not see the settings of editors."""
    home = tempfile.TemporaryDirectory(prefix="toold-tests-home-")
    config.add_cleanup(home.cleanup)
    for name in [name for name in os.environ if name.startswith("XDG_") and name.endswith("_HOME")]:
        del os.environ[name]
    for name in _CONFIG_VARIABLES:
        os.environ.pop(name, None)
    os.environ["HOME"] = home.name
    if config.pluginmanager.hasplugin("cacheprovider"):  # matplotlib searches for fonts once, for some seconds
        os.environ.setdefault("MPLCONFIGDIR", str(config.cache.mkdir("matplotlib")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two workers per CPU: tests that start processes spend much of their time waiting for them; others wait less."""
    cpus = os.cpu_count() or 1
    return cpus + cpus // 2 if is_fast_run(config) else 2 * cpus


def is_fast_run(config: pytest.Config) -> bool:
    """Whether this is `make test-fast`, which selects the tests that start no process and are not slow."""
    return bool(config.getoption("markexpr") == "not process and not slow")


# --- tests that start processes --------------------------------------------------------------------------------------

_PROCESS_EVENTS = frozenset({"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"})
_FONT_LIST = "fc-list"
"""matplotlib starts it when it is first imported, if it has no list of fonts yet."""
_ADVICE = "mark the test with `process`, or let its fixture depend on `starts_processes` (CONTRIBUTING.md)"


class _ProcessGuard:
    """Fails a test that starts a process without the marker ``process``; `make test-fast` relies on the marker."""

    def __init__(self) -> None:
        self.unmarked_test: str | None = None
        """The id of the running test if it must not start a process."""
        self.listed_fonts = False
        """Whether the running test started ``fc-list``, as the first import of matplotlib in a fresh checkout does."""

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event not in _PROCESS_EVENTS or self.unmarked_test is None:
            return
        if arguments[0] != _FONT_LIST:
            raise RuntimeError(f"{self.unmarked_test} starts a process ({event}): {_ADVICE}")
        self.listed_fonts = True


_guard = _ProcessGuard()
sys.addaudithook(_guard.audit)


def _reaped() -> int:
    """Page faults of ended child processes: grows with every child, also with those of native extensions."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt


@pytest.fixture(scope="session")
def starts_processes() -> None:
    """A fixture that starts processes depends on this one: its tests then get the marker ``process``."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark the tests whose fixtures start processes or that host a daemon, before ``-m`` selects tests; then order the
    selected ones.
    """
    for item in items:
        if "starts_processes" in getattr(item, "fixturenames", ()):
            item.add_marker("process")
        if isinstance(item, pytest.Function) and _hosts_own_daemon(item):
            item.add_marker("slow")
    yield
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    items[:] = _by_worker(items, workers)


def _by_worker(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Order the tests so that each worker begins with its share of those that start processes.

    Each worker first gets one piece of the list, and when it has finished takes tests from the end of another one's.
    These are then quick ones. In the order of their files, such tests are together: the workers took them from each
    other, and each started the daemons of the same module.
    """
    with_processes = [item for item in items if item.get_closest_marker("process")]
    others = [item for item in items if not item.get_closest_marker("process")]
    ordered: list[pytest.Item] = []
    begin = 0
    for worker in range(1, workers + 1):
        end = len(with_processes) * worker // workers
        while 0 < end < len(with_processes) and with_processes[end].path == with_processes[end - 1].path:
            end += 1
        ordered += with_processes[begin:end]
        ordered += others[len(others) * (worker - 1) // workers : len(others) * worker // workers]
        begin = end
    return ordered


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Guard the setup, call and teardown of a test without the marker."""
    _guard.unmarked_test = None if item.get_closest_marker("process") else item.nodeid
    try:
        return (yield)
    finally:
        _guard.unmarked_test = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Detect the processes that raise no audit event, such as sandbox workers.

    Only in runs without marked tests: elsewhere, a child of an earlier test may end during this one.
    """
    before, _guard.listed_fonts = _reaped(), False
    result = yield
    if is_fast_run(item.config) and _reaped() != before and not _guard.listed_fonts:
        pytest.fail(f"a child process ended during this test: {_ADVICE}")
    return result


# --- tests that host a daemon ----------------------------------------------------------------------------------------

_DAEMON_STARTS: frozenset[object] = frozenset({running, daemon_under_test})


def _hosts_own_daemon(item: pytest.Function) -> bool:
    """Whether the test or a fixture starts a daemon for this test only. Daemons that tests share are cheap."""
    if _starts_daemon(inspect.unwrap(item.function)):
        return True
    definitions = (definitions[-1] for definitions in item._fixtureinfo.name2fixturedefs.values())
    return any(_starts_daemon(fixture.func) for fixture in definitions if fixture.scope == "function")


_visited: dict[Any, bool] = {}


def _starts_daemon(called: Any) -> bool:
    """Whether a function or class of the tests names a function that starts a daemon, itself or in what it names."""
    if called not in _visited:
        _visited[called] = False  # until it is known, for recursive functions
        functions = [called] if inspect.isfunction(called) else filter(inspect.isfunction, vars(called).values())
        named = {
            id(value): value
            for function in functions
            for name in _names(inspect.unwrap(function).__code__)
            if inspect.isfunction(value := function.__globals__.get(name)) or inspect.isclass(value)
        }
        _visited[called] = any(
            value in _DAEMON_STARTS or (value.__module__.startswith("tests.") and _starts_daemon(value))
            for value in named.values()
        )
    return _visited[called]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


# --- skips -----------------------------------------------------------------------------------------------------------


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the skips by reason; xdist calls this in the controller."""
    if report.skipped and isinstance(report.longrepr, tuple):
        _skips[str(report.longrepr[2]).removeprefix("Skipped: ")] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI, fail the run if a test was skipped for any other reason than the allowed ones."""
    if os.environ.get("CI") and any(not reason.startswith(ALLOWED_SKIPS) for reason in _skips):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of skips per reason, and which reasons CI rejects."""
    for reason, number in _skips.items():
        verdict = "" if reason.startswith(ALLOWED_SKIPS) else " - NOT ALLOWED IN CI"
        terminalreporter.line(f"{number} skipped: {reason}{verdict}")


# --- fixtures --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def row() -> Callable[..., CallRow]:
    """Makes an audit row of a call, by default of ``echo``."""

    def make(**fields: Any) -> CallRow:
        defaults: dict[str, Any] = {
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
        return CallRow(**defaults | fields)

    return make


@pytest.fixture(scope="session")
def cluster(starts_processes: None) -> Iterator[Cluster]:
    """A PostgreSQL server with Supabase's roles, for all tests of a worker; skips if pgserver is missing."""
    with running_cluster() as server:
        server.sql(ROLES)
        yield server


@pytest.fixture(scope="session")
def audit_key() -> bytes:
    """The key of the audit chain."""
    return b"k" * KEY_BYTES


@pytest.fixture(scope="session")
def damage() -> Callable[[Path, str], None]:
    """Overwrites the first page of a table in a closed database."""

    def overwrite(database: Path, table: str) -> None:
        with closing(sqlite3.connect(database)) as connection:
            query = "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?"
            page, size = connection.execute(query, (table,)).fetchone()
        with database.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(b"\xff" * size)

    return overwrite
