"""Logging: one stream for toold and its libraries, with session and request ids and without secrets."""

import asyncio
import contextlib
import logging
import os
import sys
import traceback
from contextvars import ContextVar
from typing import Any, Final, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from ...audit import REDACTED, Policy, error_summary, is_secret_name, redact, redact_text
from ...protocol.error_codes import CallError
from ...protocol.terminal_text import terminal_safe
from ...protocol.tool_call import RequestId
from ...tools import ValueMask
from .source_log import keep_source_line

_TRACEBACK_FRAMES: Final = 50
"""The number of innermost frames that a traceback shows, because callers can cause deep recursions repeatedly."""

LIBRARY_LEVELS: Final = {
    # Below these levels, the libraries log requests and frames with headers and bodies, and so keys and tokens.
    "websockets": logging.INFO,
    "uvicorn": logging.WARNING,
    "uvicorn.access": logging.CRITICAL,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpcore2": logging.WARNING,
    "openai": logging.WARNING,
    "zhipuai": logging.WARNING,
    "zai": logging.WARNING,
    "asyncio": logging.WARNING,
    # Logs each invalid message of an upstream server with a traceback; the calls already report them.
    "mcp.client": logging.CRITICAL,
    "mcp.shared": logging.CRITICAL,
}
"""The lowest level of each library, whatever the configured level."""

_hidden: list[ValueMask] = []
"""The operator's bound values, which no log line may show."""

_masked: ContextVar[ValueMask | None] = ContextVar("masked", default=None)
"""Values that log lines of the current task must not show."""

_worker: list[int] = []
"""The number of this worker; empty if the daemon is one process."""
_content: list[Policy] = ["shape"]
"""The part of error messages that log lines show (``audit_content``)."""

_current: ContextVar[tuple[str, RequestId | None] | None] = ContextVar("current_call", default=None)


def bind_session(session_id: str) -> None:
    """Add this session to the log lines of the current task and of tasks that it starts."""
    _current.set((session_id, None))


def bind_call(session_id: str, request_id: RequestId) -> None:
    """Add this session and request to the log lines of the current task and of tasks that it starts."""
    _current.set((session_id, request_id))


def bind_mask(mask: ValueMask) -> None:
    """Hide these values in the log lines of the current task and of tasks that it starts."""
    _masked.set(mask)


def hide(mask: ValueMask) -> None:
    """Hide these values in all log lines of this process; replaces the values hidden before."""
    _hidden[:] = [mask]


def log_content(policy: Policy) -> None:
    """Set the part of error messages that all log lines of this process show."""
    _content[:] = [policy]


def shown_content(text: str) -> str | None:
    """The text, which may quote a call, if the setting is ``full``; otherwise None."""
    return text if _content[0] == "full" else None


def error_text(error: CallError) -> str | None:
    """An error's message with ``full``, otherwise its summary."""
    return shown_content(error.message) or error_summary(error)


def exception_text(error: BaseException, max_chars: int) -> str:
    """The type of a tool's exception and, with ``full``, its text, which may quote the tool's data."""
    name = type(error).__name__
    try:
        text = shown_content(f"{name}: {error}")
    except Exception:  # noqa: BLE001 - an exception's __str__ is the tool's code too
        return f"{name} (its text cannot be read)"
    return (text or name)[:max_chars]


def set_up_logging(
    log_format: Literal["auto", "console", "json"],
    level: Literal["debug", "info", "warning", "error"],
    *,
    stream: TextIO | None = None,
) -> None:
    """Send the log lines of structlog and the standard library to ``stream``, by default stderr.

    Can be called again to change the format and level. ``auto`` is ``console`` on a terminal and ``json``, one object
    per line, elsewhere.
    """
    stream = stream or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    processors = _processors()
    renderer = _renderer(log_format, stream)
    structlog.configure(
        processors=[*processors, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda name="toold", *_: _Output(name, stream),
        cache_logger_on_first_use=False,  # otherwise a reloaded level would not reach loggers in use
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=processors,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(threshold, logging.INFO))
    for name, least in LIBRARY_LEVELS.items():
        logging.getLogger(name).setLevel(max(threshold, least))
    logging.getLogger("websockets.server").addFilter(handshakes_in_one_line)
    logging.getLogger("asyncio").addFilter(first_line_only)
    logging.captureWarnings(capture=True)


def name_worker(number: int) -> None:
    """Add the number of this worker to each line from now on, because the lines of all workers are mixed."""
    _worker.append(number)


def _processors() -> list[Processor]:
    return [
        add_worker,
        add_call,
        add_name,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        format_exception,
        remove_secrets,
        remove_bound,
        keep_source_line,
    ]


def _renderer(log_format: str, stream: TextIO) -> Processor:
    terminal = stream.isatty()
    if log_format == "json" or (log_format == "auto" and not terminal):
        return structlog.processors.JSONRenderer(default=str)
    colours = terminal and not os.environ.get("NO_COLOR")  # no-color.org
    console = structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)

    def render(logger: WrappedLogger, method: str, event: EventDict) -> str:
        return console(logger, method, terminal_safe_values(logger, method, event))

    return render


class _Output:
    """The destination of structlog's lines. A write error must not fail the call that logs."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self.name = name
        self._stream = stream

    def msg(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(line + "\n")
            self._stream.flush()

    debug = info = warning = error = critical = exception = fatal = msg


# --- processors ------------------------------------------------------------------------------------------------------


def terminal_safe_values(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Replace characters that control a terminal, such as escape sequences that a client sent. In values that are not
    texts, Python escapes them.
    """
    texts = {name: terminal_safe(value, keep="\n\t") for name, value in event.items() if isinstance(value, str)}
    return {**event, **texts}


def add_worker(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Add ``worker`` if this process is one of several."""
    if _worker:
        event.setdefault("worker", _worker[0])
    return event


def add_call(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Add ``session`` and ``request_id``."""
    current = _current.get()
    if current is not None:
        event.setdefault("session", current[0])
        if current[1] is not None:
            event.setdefault("request_id", current[1])
    return event


def add_name(logger: WrappedLogger, _: str, event: EventDict) -> EventDict:
    """Add ``logger``, the module's name."""
    record: logging.LogRecord | None = event.get("_record")
    event["logger"] = record.name if record else logger.name
    return event


def remove_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Redact values under a secret's name and values that look like secrets."""
    for name, value in event.items():
        if name.startswith("_"):
            continue
        if is_secret_name(name):
            event[name] = REDACTED
        elif isinstance(value, str):
            event[name] = redact_text(value)
        elif isinstance(value, dict | list | tuple):
            event[name] = redact(value)
    return event


def remove_bound(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Redact the operator's bound values, and credentials that the current call uses. Only the renderer and the
    processors that store lines come later.
    """
    current = _masked.get()
    for mask in _hidden if current is None else (*_hidden, current):
        for name, value in event.items():
            if not name.startswith("_"):
                plain = isinstance(value, str | int | float | dict | list | tuple | None)
                event[name] = mask.value(value if plain else str(value))
    return event


def format_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Render ``exc_info`` as a traceback, without the texts of the exceptions unless content is logged."""
    exc_info = event.get("exc_info")
    event.pop("exc_info", None)
    if not exc_info:
        return event
    error = (
        exc_info
        if isinstance(exc_info, BaseException)
        else (exc_info if isinstance(exc_info, tuple) else sys.exc_info())[1]
    )
    if error is not None:
        with_texts = _content[0] == "full"
        event["exception"] = _with_texts(error) if with_texts else _without_texts(error)
    return event


def _with_texts(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error, limit=-_TRACEBACK_FRAMES)).rstrip()
    except Exception:  # noqa: BLE001 - an exception's __str__ is the tool's code too
        return _without_texts(error)


def _without_texts(error: BaseException) -> str:
    """A traceback with its causes, with only the types of the exceptions."""
    chain: list[str] = []
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        frames = "".join(traceback.format_tb(cause.__traceback__, limit=-_TRACEBACK_FRAMES))
        chain.append(f"Traceback (most recent call last):\n{frames}{type(cause).__name__}")
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n\nwhich led to:\n\n".join(reversed(chain))


# --- log lines of asyncio --------------------------------------------------------------------------------------------


def first_line_only(record: logging.LogRecord) -> bool:
    """A log filter that drops asyncio's further lines, which show tasks with the texts of their exceptions."""
    if _content[0] != "full":
        record.msg, record.args = record.getMessage().partition("\n")[0], ()
    return True


# --- log lines of websockets -----------------------------------------------------------------------------------------


def handshakes_in_one_line(record: logging.LogRecord) -> bool:
    """A log filter: a failed WebSocket handshake is one line with peer and reason, without a traceback.

    The library's lines on successful connections are dropped, because the daemon logs them itself.
    """
    if record.getMessage() == "connection handler failed":
        return True  # a bug in the daemon: keep the traceback
    refused = record.msg.startswith(("connection rejected", "opening handshake failed", "HTTP response sent"))
    if not refused:
        return record.levelno >= logging.WARNING
    peer, reason = _handshake(record)
    record.msg = f"handshake refused: {reason or record.getMessage()} (peer {peer})"
    record.args = ()
    record.exc_info = None
    record.levelno, record.levelname = logging.INFO, "INFO"
    return True


def _handshake(record: logging.LogRecord) -> tuple[str, str | None]:
    """The peer's address and the problem with its request."""
    error: BaseException | None = record.exc_info[1] if record.exc_info else None
    peer = "unknown"
    # The library passes a weak reference to a connection that may no longer exist.
    with contextlib.suppress(AttributeError, ReferenceError):
        connection: Any = record.__dict__.get("websocket")
        error = error or connection.protocol.handshake_exc
        peer = ":".join(str(part) for part in connection.remote_address[:2])
    # The reason quotes the peer's header, which may be long.
    return peer, f"{type(error).__name__}: {error}"[:200] if error else None


def log_task_failure(task: asyncio.Task[Any]) -> None:
    """A done callback for background tasks, which should run until shutdown: logs a failure."""
    if not task.cancelled() and (error := task.exception()) is not None:
        structlog.get_logger("toold.daemon").error("background task failed", task=task.get_name(), exc_info=error)
