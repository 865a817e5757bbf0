"""Validates a connection's first frame. Pure: callers pass the authorization and the function that makes labels."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from .authorization import Authorization, AuthorizationDenied
from .error_codes import (
    CallError,
    PermissionDeniedError,
    ProtocolError,
    ServiceUnavailableError,
    ToolError,
    UnauthorizedError,
)
from .frame_decoding import decode_client_frame
from .frames import (
    CLOSE_NO_HELLO,
    CLOSE_NOT_HELLO,
    CLOSE_NOT_JSON,
    CLOSE_RESTART,
    CLOSE_STALE,
    CLOSE_UNAUTHORIZED,
    Hello,
)
from .name_suggestions import MAX_WORD_CHARS, close_names, did_you_mean
from .tool_call import ClientInfo, Principal

JSON_TEXT: Final = "json_text"
PROSE_TEXT: Final = "prose_text"
_TEXT_FEATURES: Final = frozenset({JSON_TEXT, PROSE_TEXT})
"""The features that select the form of conversational answers. They do not imply that the client reads further
frames.
"""
SERVER_FEATURES: Final = (
    *("ack", "stream", "resume", "going_away", "tools_changed", "questions", "resources"),
    *(JSON_TEXT, PROSE_TEXT),
)
"""The optional features that this server supports."""

_LABEL = re.compile(r"[A-Za-z0-9_-]{3,64}")
_MAX_CLIENT_FIELD: Final = 200
_MAX_RESUME_KEY_CHARS: Final = 200
_MAX_CONNECTION_NUMBER: Final = 2**53
"""The largest whole number that every JSON library reads exactly."""


@dataclass(frozen=True, slots=True)
class HelloAccepted:
    """A valid hello: the properties of the connection."""

    label: str
    """The client's label, or a generated one."""
    label_problem: str | None
    """The reason why the client's label was replaced; None if it was not."""
    access: Authorization
    features: tuple[str, ...]
    """The features that both sides support, in the order of ``SERVER_FEATURES``."""
    client: ClientInfo
    resume_key: str | None
    """The key of the session to resume; None for a new session."""
    connection_number: int | None
    """The number that the client gave this connection to the session; None if it sent none."""
    toolset: str | None
    """The toolset that the client requested; None leaves the choice to the operator."""
    notice: str | None
    """The parts of the hello that were not accepted as sent, for a person to read."""

    @property
    def principal(self) -> Principal:
        return self.access.principal

    @property
    def plain(self) -> bool:
        """Whether the client supports only ``hello``, ``call_tool`` and ``call_tool_res``."""
        return not set(self.features) - _TEXT_FEATURES

    @property
    def result_text(self) -> Literal["json", "prose"] | None:
        """The form of conversational answers that the client requested; ``prose`` if it requested both."""
        return "prose" if PROSE_TEXT in self.features else "json" if JSON_TEXT in self.features else None

    @property
    def resumable(self) -> bool:
        """Whether the client supports resuming."""
        return "resume" in self.features


@dataclass(frozen=True, slots=True)
class HelloRefused:
    """A rejected hello: the client gets a ``hello_ack`` with the error, then this close code."""

    close_code: int
    error: ToolError


def parse_hello(data: str | bytes) -> Hello | HelloRefused:
    """Decodes the first frame, which must be a hello."""
    try:
        value = msgspec.json.decode(data) if isinstance(data, str) else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return _refused(CLOSE_NOT_JSON, ProtocolError("The first frame must be a JSON object in a text frame: hello."))
    frame = decode_client_frame(str(data).encode()) if value.get("op") == "hello" else None
    if not isinstance(frame, Hello):
        return _refused(CLOSE_NOT_HELLO, ProtocolError('The first frame must be {"op":"hello",…}.'))
    return frame


def token_of(frame: Hello) -> str | None:
    """Returns the token of a hello, if it has one."""
    return frame.token if isinstance(frame.token, str) else None


def validate_hello(
    frame: Hello,
    access: Authorization | AuthorizationDenied,
    *,
    make_label: Callable[[], str],
    toolsets: Collection[str],
) -> HelloAccepted | HelloRefused:
    """Validates a hello, given the client's authorization. ``toolsets`` are the names of all toolsets."""
    if isinstance(access, AuthorizationDenied):
        return _denied(access)
    usable = access.usable_toolsets(toolsets)
    if not usable or (frame.toolset is not None and frame.toolset not in usable):
        return _refused(CLOSE_UNAUTHORIZED, _no_such_toolset(frame.toolset, usable))
    return _accepted(frame, access, make_label)


def stale_hello(number: int, newest: int) -> HelloRefused:
    """Returns the refusal of a hello after a later connection, ``newest``, has resumed the session."""
    message = (
        f"resume.n: connection {newest} of this client has resumed the session, so connection {number} is too late. "
        "Close it and keep the newer one."
    )
    return _refused(CLOSE_STALE, ProtocolError(message, details={"n": newest}))


def hello_timed_out(timeout_s: float) -> HelloRefused:
    """Returns the refusal for a connection that sent no hello within ``timeout_s`` seconds."""
    return _refused(CLOSE_NO_HELLO, ProtocolError(f"No hello within {timeout_s:g} s."))


def _denied(denied: AuthorizationDenied) -> HelloRefused:
    match denied.reason:
        case "missing":
            message = "token: missing. Send the daemon's token in hello; `toold token` prints it."
            return _refused(CLOSE_UNAUTHORIZED, UnauthorizedError(message))
        case "insufficient_scope":
            return _refused(CLOSE_UNAUTHORIZED, PermissionDeniedError(f"token: {denied.message}"))
        case "not_for_users":
            return _refused(CLOSE_UNAUTHORIZED, PermissionDeniedError(denied.message))
        case "unavailable":
            return _refused(CLOSE_RESTART, ServiceUnavailableError(denied.message, executed="no"))
        case "invalid":
            return _refused(CLOSE_UNAUTHORIZED, UnauthorizedError(f"token: {denied.message}"))


def _accepted(frame: Hello, access: Authorization, make_label: Callable[[], str]) -> HelloAccepted:
    notices: list[str] = []
    problem = _label_problem(frame.session_id)
    label = str(frame.session_id) if problem is None else make_label()
    features = _features(frame.features, notices)
    client = _client(frame.client, notices)
    resume_key = _resume_key(frame.resume, features, notices)
    number = None if resume_key is None else _connection_number(frame.resume, notices)
    notice = "; ".join(notices) or None
    return HelloAccepted(label, problem, access, features, client, resume_key, number, frame.toolset, notice)


def _label_problem(label: object) -> str | None:
    if label is None:
        return "missing"
    if isinstance(label, str) and _LABEL.fullmatch(label):
        return None
    return "not 3-64 characters of A-Za-z0-9_-"


def _features(requested: object, notices: list[str]) -> tuple[str, ...]:
    if requested is None:
        return ()
    if not isinstance(requested, list):
        notices.append("features: not a list of names, so no feature is enabled")
        return ()
    return tuple(name for name in SERVER_FEATURES if name in requested)


def _client(requested: object, notices: list[str]) -> ClientInfo:
    if requested is None:
        return ClientInfo()
    try:
        info = msgspec.convert(requested, ClientInfo)
    except msgspec.ValidationError:
        notices.append("client: not {name, version, workspace} as strings, so it is ignored")
        return ClientInfo()
    return ClientInfo(info.name[:_MAX_CLIENT_FIELD], info.version[:_MAX_CLIENT_FIELD], info.workspace)


def _resume_key(requested: object, features: tuple[str, ...], notices: list[str]) -> str | None:
    if requested is None:
        return None
    key = requested.get("key") if isinstance(requested, dict) else None
    if "resume" not in features:
        notices.append("resume: requires the feature 'resume'; this is a new session")
    elif not isinstance(key, str) or len(key) > _MAX_RESUME_KEY_CHARS:
        notices.append('resume: not {"key": …} with the resume_key of an earlier hello_ack; this is a new session')
    else:
        return key
    return None


def _connection_number(requested: object, notices: list[str]) -> int | None:
    number = requested.get("n") if isinstance(requested, dict) else None
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= _MAX_CONNECTION_NUMBER:
        notices.append("resume.n: not a whole number above 0, so it is ignored")
        return None
    return number


def _no_such_toolset(requested: object, toolsets: Collection[str]) -> PermissionDeniedError:
    names = sorted(toolsets)
    if not names:
        return PermissionDeniedError("toolset: this token permits no existing toolset.")
    problem = "not a string."
    if isinstance(requested, str):
        hint = did_you_mean(close_names(requested, names, n=1))
        problem = f"{requested[:MAX_WORD_CHARS]!r} does not exist or is not permitted{f'; {hint}' if hint else '.'}"
    message = f"toolset: {problem} You may use {', '.join(names)}, or omit the field for the default."
    return PermissionDeniedError(message, details={"toolsets": names})


def _refused(close_code: int, error: CallError) -> HelloRefused:
    return HelloRefused(close_code, error.to_tool_error())
