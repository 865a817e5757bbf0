"""Logging: what is written, in which form, and what never is."""

import asyncio
import contextlib
import io
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from toold.audit import Policy
from toold.daemon.observability.logging_setup import (
    LIBRARY_LEVELS,
    bind_call,
    bind_session,
    exception_text,
    first_line_only,
    handshakes_in_one_line,
    log_content,
    log_task_failure,
    remove_secrets,
    set_up_logging,
)
from toold.protocol.tool_call import RequestId
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve


class Log(io.StringIO):
    """The logged text."""

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]

    @property
    def events(self) -> list[str]:
        return [line["event"] for line in self.lines]


SetUp = Callable[..., Log]


@pytest.fixture
def set_up() -> Iterator[SetUp]:
    """A function that sets up logging into a ``Log``; undone after the test."""
    root = logging.getLogger()
    loggers = [root, *map(logging.getLogger, LIBRARY_LEVELS)]
    levels, handlers, before = [logger.level for logger in loggers], root.handlers[:], structlog.get_config()

    def make(log_format: Any = "json", level: Any = "info") -> Log:
        log = Log()
        set_up_logging(log_format, level, stream=log)
        return log

    yield make
    log_content("shape")
    structlog.configure(**before)
    logging.captureWarnings(capture=False)
    logging.getLogger("websockets.server").removeFilter(handshakes_in_one_line)
    logging.getLogger("asyncio").removeFilter(first_line_only)
    root.handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def ours() -> Any:
    return structlog.get_logger("toold.tests")


def test_a_line_is_an_object(set_up: SetUp) -> None:
    """In JSON each line is one object with event, level, logger, time and the event's fields."""
    log = set_up()
    ours().warning("disk is slow", ms=5)
    (line,) = log.lines
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "disk is slow", "level": "warning", "logger": "toold.tests", "ms": 5}


def test_loggers_made_before_the_set_up_follow_it(set_up: SetUp) -> None:
    """Modules make their loggers when they are imported, before anything is set up."""
    early = ours()
    log = set_up()
    early.info("hello")
    assert log.events == ["hello"]


def test_auto_is_json_without_a_terminal(set_up: SetUp) -> None:
    """Where the stream is a pipe or a file, programs read it."""
    log = set_up("auto")
    ours().info("hello")
    assert log.events == ["hello"]


def test_auto_is_for_people_on_a_terminal(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal lines are coloured text."""
    monkeypatch.setattr(Log, "isatty", lambda _: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    log = set_up("auto")
    ours().info("hello")
    assert "\x1b" in log.getvalue()


def test_no_color_is_honoured(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR a terminal gets text as well, but no colours."""
    monkeypatch.setattr(Log, "isatty", lambda _: True)
    monkeypatch.setenv("NO_COLOR", "1")
    log = set_up("auto")
    ours().info("hello")
    assert "hello" in log.getvalue()
    assert "\x1b" not in log.getvalue()


def test_console_is_for_people(set_up: SetUp) -> None:
    """On the console a line is text, without colours where no terminal is, also where a library speaks."""
    log = set_up("console")
    ours().info("hello", n=5)
    logging.getLogger("library").warning("from %s", "there")
    reported = log.getvalue()
    assert "hello" in reported
    assert "n=5" in reported
    assert "from there" in reported
    assert "\x1b" not in reported
    assert "{" not in reported


def test_console_shows_no_control_characters(set_up: SetUp) -> None:
    """What a client or a server sent cannot control the terminal that shows the log."""
    log = set_up("console")
    ours().info("hello \x1b[2J", label="\x9b5m\x07", listed=["\x1b"])
    logging.getLogger("library").warning("from %s", "\x1b]0;there\x07")
    assert "there" in log.getvalue()
    assert set("\x1b\x9b\x07").isdisjoint(log.getvalue())


def test_lines_below_the_level_are_not_written(set_up: SetUp) -> None:
    """The level holds for our lines and for the libraries'."""
    log = set_up(level="warning")
    ours().info("a")
    ours().warning("b")
    logging.getLogger("library").info("c")
    logging.getLogger("library").error("d")
    assert log.events == ["b", "d"]


def test_a_second_set_up_applies_to_loggers_in_use(set_up: SetUp) -> None:
    """After a reload, level and format apply to all loggers, those of libraries included; no line is written twice."""
    logger, library = ours(), logging.getLogger("a.library")
    first = set_up()
    logger.info("one")
    library.info("one")
    second = set_up(level="warning")
    for line in (logger, library):
        line.info("two")
        line.warning("three")
    assert (first.events, second.events) == (["one", "one"], ["three", "three"])


async def test_each_line_has_its_session_and_request(set_up: SetUp) -> None:
    """Lines of a task bear the call that it runs, also a library's and those of tasks that it starts; others do not."""
    log = set_up()

    async def child() -> None:
        ours().info("child")

    async def call(session: str, request: RequestId) -> None:
        bind_session(session)
        ours().info("connected")
        bind_call(session, request)
        await asyncio.sleep(0)
        ours().info("ours")
        logging.getLogger("library").info("theirs")
        await asyncio.create_task(child())

    await asyncio.gather(call("s-1", "r-1"), call("s-2", 7))
    ours().info("outside")
    reported = {(line["event"], line.get("session"), line.get("request_id")) for line in log.lines}
    assert reported == {
        ("connected", "s-1", None),
        ("connected", "s-2", None),
        *((event, "s-1", "r-1") for event in ("ours", "theirs", "child")),
        *((event, "s-2", 7) for event in ("ours", "theirs", "child")),
        ("outside", None, None),
    }


def test_secrets_are_redacted(set_up: SetUp) -> None:
    """Values with a secret's name or form are in no line: not toold's, not a library's, not in a traceback."""
    log = set_up()
    key = "sk-" + "verysecret" * 3
    ours().info("hello", token=key, apiKey=key, nested={"authorization": key}, text=f"it is {key}")
    logging.getLogger("library").warning("the key %s", key)
    ours().error("failed", exc_info=ValueError(key))
    assert "verysecret" not in log.getvalue()
    assert log.getvalue().count("[redacted]") >= 5


def test_a_traceback_stays_on_its_line(set_up: SetUp) -> None:
    """In JSON an exception is a field, so that a line stays a line."""
    log = set_up()
    ours().error("failed", exc_info=ZeroDivisionError())
    (line,) = log.lines
    assert "ZeroDivisionError" in line["exception"]


def test_values_unknown_to_json_are_written_as_text(set_up: SetUp) -> None:
    """A value of any type makes a line."""
    log = set_up()
    ours().info("x", path=Path("/tmp"), odd="\ud800", items=[Path("/a")])
    assert log.lines[0]["path"] == "/tmp"


def test_warnings_are_lines_too(set_up: SetUp) -> None:
    """Python's warnings do not break the format."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        log = set_up()
        warnings.warn("old ways", stacklevel=1)
        logging.captureWarnings(capture=False)  # while what it replaced is still to be put back
    assert "old ways" in log.events[0]


@pytest.mark.parametrize("name", ["websockets.server", "httpx", "httpcore.http11", "openai._base", "uvicorn.error"])
def test_libraries_do_not_log_what_they_send(set_up: SetUp, name: str) -> None:
    """At debug level libraries would log requests with their headers and bodies; they are not let."""
    log = set_up(level="debug")
    logging.getLogger(name).debug("a secret")
    ours().debug("ours")
    assert log.events == ["ours"]


def test_a_failing_log_does_not_fail_the_caller(set_up: SetUp) -> None:
    """If the stream is closed, or the reader of the pipe has exited, the daemon continues."""
    log = set_up()
    reading, writing = os.pipe()
    os.close(reading)
    with contextlib.suppress(BrokenPipeError), open(writing, "w") as pipe:  # noqa: PTH123 - of a descriptor
        set_up_logging("json", "info", stream=pipe)
        ours().error("nobody reads this")
    log = set_up()
    log.close()
    ours().error("nor this")


# --- websockets' own lines -------------------------------------------------------------------------------------------

UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


async def test_failed_handshakes_are_one_line_each(set_up: SetUp) -> None:
    """Plain HTTP and a foreign Origin are one line with peer and reason; good connections and noise make none."""
    log = set_up()

    async def talk(port: int, data: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async with serve(lambda connection: connection.wait_closed(), "127.0.0.1", 0, origins=[None]) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        await talk(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await talk(port, UPGRADE + b"Origin: http://evil\r\n\r\n")
        await talk(port, b"\x16\x03\x01\x00\r\n\r\n")
        async with connect(f"ws://127.0.0.1:{port}"):
            pass
    assert all(line["level"] == "info" and "exception" not in line for line in log.lines)
    events = log.events
    assert len(events) in {2, 3}  # only some releases of websockets log bytes that are not HTTP
    assert all(event.startswith("handshake refused: ") and "(peer 127.0.0.1:" in event for event in events)
    assert "InvalidUpgrade" in events[0]
    assert "InvalidOrigin: invalid Origin header: http://evil" in events[1]


def record(
    message: str, level: int = logging.INFO, error: BaseException | None = None, **extra: Any
) -> logging.LogRecord:
    info = (type(error), error, None) if error else None
    log_record = logging.LogRecord("websockets.server", level, __file__, 1, message, (), info)
    log_record.__dict__.update(extra)
    return log_record


def test_a_failed_handshake_loses_its_traceback() -> None:
    """Handshake failures that some websockets releases log with a traceback are one line, too."""
    result = record("opening handshake failed", logging.ERROR, EOFError("gone"), websocket=None)
    assert handshakes_in_one_line(result)
    assert (result.getMessage(), result.levelname, result.exc_info) == (
        "handshake refused: EOFError: gone (peer unknown)",
        "INFO",
        None,
    )


def test_bugs_keep_their_traceback() -> None:
    """An exception in the daemon's handler is a bug and keeps its traceback."""
    result = record("connection handler failed", logging.ERROR, KeyError("x"))
    assert handshakes_in_one_line(result)
    assert result.exc_info is not None


def test_messages_with_odd_types() -> None:
    """Only texts and containers are looked into; other values pass as they are."""
    path = Path("/tmp")
    assert remove_secrets(None, "", {"event": "x", "n": 5, "p": path, "_record": 1}) == {
        "event": "x",
        "n": 5,
        "p": path,
        "_record": 1,
    }


async def test_a_failed_background_task_is_logged(set_up: SetUp) -> None:
    """With its name and the traceback; one that was cancelled, or ended well, is not."""
    log = set_up("json", "info")

    async def fail() -> None:
        raise ValueError("a fault")

    tasks = [asyncio.create_task(work, name=name) for name, work in (("bad", fail()), ("good", asyncio.sleep(0)))]
    tasks.append(asyncio.create_task(asyncio.sleep(60), name="cancelled"))
    for task in tasks:
        task.add_done_callback(log_task_failure)
    tasks[-1].cancel()
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    (line,) = log.lines
    assert line["task"] == "bad"
    assert "in fail" in line["exception"]
    assert line["exception"].endswith("ValueError")


def fails(words: str) -> None:
    try:
        dict[str, str]()[words]
    except KeyError as cause:
        raise ValueError(words) from cause


@pytest.mark.parametrize("policy", ["shape", "none", "full"])
def test_texts_of_exceptions_follow_the_content_setting(set_up: SetUp, policy: Policy) -> None:
    """A traceback has the types of an exception and its causes, and with ``full`` their texts; asyncio's lines too."""
    log = set_up("json", "debug")
    log_content(policy)
    words = "patient Jane"
    with pytest.raises(ValueError, match=words) as caught:
        fails(words)
    ours().error("failed", exc_info=caught.value)
    logging.getLogger("asyncio").error("never retrieved\nfuture: %r", caught.value, exc_info=caught.value)
    for line in log.lines:
        assert "KeyError" in line["exception"]
        assert "ValueError" in line["exception"]
    assert [words in str(line) for line in log.lines] == [policy == "full"] * 2
    assert exception_text(caught.value, 100) == (f"ValueError: {words}" if policy == "full" else "ValueError")


def recurse(depth: int) -> None:
    if depth == 0:
        raise ValueError("deep")
    if depth % 2:  # two lines in turn, which Python does not abbreviate
        recurse(depth - 1)
    else:
        recurse(depth - 1)


@pytest.mark.parametrize("policy", ["shape", "full"])
def test_a_traceback_shows_the_innermost_frames(set_up: SetUp, policy: Policy) -> None:
    """A caller that makes a tool recurse deeply does not fill the log."""
    log = set_up("json")
    log_content(policy)
    with pytest.raises(ValueError, match="deep") as caught:
        recurse(400)
    ours().error("failed", exc_info=caught.value)
    assert log.lines[0]["exception"].count("in recurse") == 50
    assert 'raise ValueError("deep")' in log.lines[0]["exception"]
