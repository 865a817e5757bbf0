"""What becomes of a connection's first frame. Pure: who the token is from, and the maker of labels, are handed in."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

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
from .frames import CLOSE_NO_HELLO, CLOSE_NOT_HELLO, CLOSE_NOT_JSON, CLOSE_RESTART, CLOSE_UNAUTHORIZED, Hello
from .name_suggestions import MAX_WORD_CHARS, close_names, did_you_mean
from .tool_call import ClientInfo, Principal

SERVER_FEATURES: Final = ("ack", "stream", "resume", "going_away", "tools_changed")
"""What this server understands beyond plain."""

_LABEL = re.compile(r"[A-Za-z0-9_-]{3,64}")
_MAX_CLIENT_FIELD: Final = 200
_MAX_RESUME_KEY_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class HelloAccepted:
    """The hello is good: what the connection is from now on."""

    label: str
    """The client's, or a made one."""
    label_problem: str | None
    """Why it is not the client's; None where it is."""
    access: Authorization
    features: tuple[str, ...]
    """What both sides have, in the order of ``SERVER_FEATURES``."""
    client: ClientInfo
    resume_key: str | None
    """Of the session that the client comes back to; None where it asks for a new one."""
    toolset: str | None
    """That the client asked for; None leaves it to the operator."""
    notice: str | None
    """What was not taken as it was sent, for the person who reads the ack."""

    @property
    def principal(self) -> Principal:
        return self.access.principal

    @property
    def plain(self) -> bool:
        """The client understands nothing beyond ``hello``, ``call_tool`` and ``call_tool_res``."""
        return not self.features

    @property
    def resumable(self) -> bool:
        """The client wants a session that it may come back to."""
        return "resume" in self.features


@dataclass(frozen=True, slots=True)
class HelloRefused:
    """The connection ends: a ``hello_ack`` with the error, then this close code."""

    close_code: int
    error: ToolError


def parse_hello(data: str | bytes) -> Hello | HelloRefused:
    """The first frame, where it is a hello."""
    try:
        value = msgspec.json.decode(data) if isinstance(data, str) else None
    except (msgspec.DecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return _refused(CLOSE_NOT_JSON, ProtocolError("The first frame must be a JSON object: hello, as a text frame."))
    frame = decode_client_frame(data) if value.get("op") == "hello" else None
    if not isinstance(frame, Hello):
        return _refused(CLOSE_NOT_HELLO, ProtocolError('The first frame must be {"op":"hello",…}.'))
    return frame


def token_of(frame: Hello) -> str | None:
    """The token of a hello, where it has one."""
    return frame.token if isinstance(frame.token, str) else None


def validate_hello(
    frame: Hello,
    access: Authorization | AuthorizationDenied,
    *,
    make_label: Callable[[], str],
    toolsets: Collection[str],
) -> HelloAccepted | HelloRefused:
    """A hello, and who it is from → the connection's standing, or why there is none.

    ``toolsets`` are the names that there are.
    """
    if isinstance(access, AuthorizationDenied):
        return _denied(access)
    usable = access.usable_toolsets(toolsets)
    if not usable or (frame.toolset is not None and frame.toolset not in usable):
        return _refused(CLOSE_UNAUTHORIZED, _no_such_toolset(frame.toolset, usable))
    return _accepted(frame, access, make_label)


def hello_timed_out(timeout_s: float) -> HelloRefused:
    """What a connection gets that said nothing for ``timeout_s`` seconds."""
    return _refused(CLOSE_NO_HELLO, ProtocolError(f"No hello came within {timeout_s:g} s."))


def _denied(denied: AuthorizationDenied) -> HelloRefused:
    match denied.why:
        case "missing":
            message = "token: missing. `toold token` prints the daemon's; send it in hello."
            return _refused(CLOSE_UNAUTHORIZED, UnauthorizedError(message))
        case "insufficient_scope":
            return _refused(CLOSE_UNAUTHORIZED, PermissionDeniedError(f"token: {denied.message}"))
        case "unavailable":
            return _refused(CLOSE_RESTART, ServiceUnavailableError(denied.message, executed="no"))
        case "invalid":
            return _refused(CLOSE_UNAUTHORIZED, UnauthorizedError(f"token: {denied.message}"))


def _accepted(frame: Hello, access: Authorization, make_label: Callable[[], str]) -> HelloAccepted:
    notices: list[str] = []
    objection = _objection(frame.session_id)
    label = str(frame.session_id) if objection is None else make_label()
    features = _features(frame.features, notices)
    client = _client(frame.client, notices)
    resume_key = _resume_key(frame.resume, features, notices)
    notice = "; ".join(notices) or None
    return HelloAccepted(label, objection, access, features, client, resume_key, frame.toolset, notice)


def _objection(label: object) -> str | None:
    if label is None:
        return "none was sent"
    if isinstance(label, str) and _LABEL.fullmatch(label):
        return None
    return "not 3-64 characters of A-Za-z0-9_-"


def _features(wished: object, notices: list[str]) -> tuple[str, ...]:
    if wished is None:
        return ()
    if not isinstance(wished, list):
        notices.append("features: not a list of names, so none was taken")
        return ()
    return tuple(name for name in SERVER_FEATURES if name in wished)


def _client(wished: object, notices: list[str]) -> ClientInfo:
    if wished is None:
        return ClientInfo()
    try:
        info = msgspec.convert(wished, ClientInfo)
    except msgspec.ValidationError:
        notices.append("client: not {name, version, workspace} as strings, so it was not taken")
        return ClientInfo()
    return ClientInfo(info.name[:_MAX_CLIENT_FIELD], info.version[:_MAX_CLIENT_FIELD], info.workspace)


def _resume_key(wished: object, features: tuple[str, ...], notices: list[str]) -> str | None:
    if wished is None:
        return None
    key = wished.get("key") if isinstance(wished, dict) else None
    if "resume" not in features:
        notices.append("resume: needs the feature 'resume' as well; this is a new session")
    elif not isinstance(key, str) or len(key) > _MAX_RESUME_KEY_CHARS:
        notices.append('resume: not {"key": …} with the resume_key of an earlier hello_ack; this is a new session')
    else:
        return key
    return None


def _no_such_toolset(wished: object, toolsets: Collection[str]) -> PermissionDeniedError:
    names = sorted(toolsets)
    if not names:
        return PermissionDeniedError("toolset: this token may use none of those that there are.")
    wrong = "not a name."
    if isinstance(wished, str):
        hint = did_you_mean(close_names(wished, names, n=1))
        wrong = f"there is no {wished[:MAX_WORD_CHARS]!r} that you may use{f'; {hint}' if hint else '.'}"
    message = f"toolset: {wrong} You may use {', '.join(names)}, or leave it out for the default."
    return PermissionDeniedError(message, details={"toolsets": names})


def _refused(close_code: int, error: CallError) -> HelloRefused:
    return HelloRefused(close_code, error.to_tool_error())
