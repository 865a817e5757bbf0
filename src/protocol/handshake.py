"""What becomes of a connection's first frame. Pure: the token check and the maker of labels are handed in."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import msgspec

from .calls import ClientInfo, Principal
from .decoding import decode_client_frame
from .errors import CallError, PermissionDeniedError, ProtocolError, ToolError, UnauthorizedError
from .frames import CLOSE_NO_HELLO, CLOSE_NOT_HELLO, CLOSE_NOT_JSON, CLOSE_UNAUTHORIZED, Hello

SERVER_FEATURES: Final = ("ack", "stream", "resume", "going_away")
"""What this server understands beyond plain. ``tools_changed`` is not spoken yet."""
DEFAULT_TOOLSET: Final = "standard"

_LABEL = re.compile(r"[A-Za-z0-9_-]{3,64}")
_MAX_CLIENT_FIELD: Final = 200
_MAX_RESUME_KEY_CHARS: Final = 200

Authenticate = Callable[[str | None], Principal | None]
"""The token of a hello → who that is, or None. Compares in constant time."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The hello is good: what the connection is from now on."""

    label: str
    label_generated: bool
    principal: Principal
    features: tuple[str, ...]
    """What both sides have, in the order of ``SERVER_FEATURES``."""
    client: ClientInfo
    resume_key: str | None
    """Of the session that the client comes back to; None where it asks for a new one."""
    notice: str | None
    """What was not taken as it was sent, for the person who reads the ack."""

    @property
    def plain(self) -> bool:
        """The client understands nothing beyond ``hello``, ``call_tool`` and ``call_tool_res``."""
        return not self.features

    @property
    def resumable(self) -> bool:
        """The client wants a session that it may come back to."""
        return "resume" in self.features


@dataclass(frozen=True, slots=True)
class Refused:
    """The connection ends: a ``hello_ack`` with the error, then this close code."""

    close_code: int
    error: ToolError


def judge_hello(
    data: str | bytes,
    *,
    authenticate: Authenticate,
    make_label: Callable[[], str],
    toolsets: Collection[str] = (DEFAULT_TOOLSET,),
) -> Accepted | Refused:
    """The first frame's payload → the connection's standing, or why there is none."""
    try:
        value = msgspec.json.decode(data) if isinstance(data, str) else None
    except (msgspec.DecodeError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return _refused(CLOSE_NOT_JSON, ProtocolError("The first frame must be a JSON object: hello, as a text frame."))
    frame = decode_client_frame(data) if value.get("op") == "hello" else None
    if not isinstance(frame, Hello):
        return _refused(CLOSE_NOT_HELLO, ProtocolError('The first frame must be {"op":"hello",…}.'))
    principal = authenticate(frame.token if isinstance(frame.token, str) else None)
    if principal is None:
        return _refused(CLOSE_UNAUTHORIZED, UnauthorizedError(_unauthorized_message(frame.token)))
    if frame.toolset is not None and frame.toolset not in tuple(toolsets):
        offered = ", ".join(sorted(toolsets))
        message = f"toolset: not one that you may use; there is {offered}. Leave it out for the default."
        return _refused(CLOSE_UNAUTHORIZED, PermissionDeniedError(message))
    return _accepted(frame, principal, make_label)


def no_hello(timeout_s: float) -> Refused:
    """What a connection gets that said nothing for ``timeout_s`` seconds."""
    return _refused(CLOSE_NO_HELLO, ProtocolError(f"No hello came within {timeout_s:g} s."))


def _accepted(frame: Hello, principal: Principal, make_label: Callable[[], str]) -> Accepted:
    notices: list[str] = []
    label, generated = _label(frame.session_id, make_label, notices)
    features = _features(frame.features, notices)
    client = _client(frame.client, notices)
    resume_key = _resume_key(frame.resume, features, notices)
    return Accepted(label, generated, principal, features, client, resume_key, "; ".join(notices) or None)


def _label(wished: object, make_label: Callable[[], str], notices: list[str]) -> tuple[str, bool]:
    if isinstance(wished, str) and _LABEL.fullmatch(wished):
        return wished, False
    if wished is None:
        notices.append("session_id: none was sent, so the server made one")
    else:
        notices.append("session_id: not 3-64 characters of A-Za-z0-9_-, so the server made one")
    return make_label(), True


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


def _unauthorized_message(token: object) -> str:
    if token is None:
        return "token: missing. `toold token` prints the daemon's; send it in hello."
    return "token: not the daemon's. `toold token` prints it; a daemon that was set up anew has a new one."


def _refused(close_code: int, error: CallError) -> Refused:
    return Refused(close_code, error.to_tool_error())
