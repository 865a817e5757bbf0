"""The stages before admission: resolve, bind_arguments, and replay of a repeated request id. Pure, except that
``prepared`` works in a thread.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from ...protocol.arguments_digest import arguments_digest
from ...protocol.error_codes import CallError, RequestIdConflictError, ResultExpiredError
from ...protocol.frame_decoding import request_key
from ...protocol.json_pieces import LONG_BYTES
from ...protocol.session_calls import RequestIdState
from ...protocol.tool_call import ToolCall, ToolResult
from ...tools import BoundArguments, Tool, ToolCatalog, is_long
from ..off_loop import off_loop
from . import call_outcome
from .admission import session_is_full
from .running_call import Session


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call with long arguments, after ``prepare_call``."""

    request: ToolCall
    """The call with the digest of its arguments."""
    _tool: Tool | None
    _arguments: BoundArguments | CallError

    def arguments_of(self, tool: Tool, catalog: ToolCatalog) -> BoundArguments:
        """The bound arguments (``ToolCatalog.bind``). They are bound again if the catalog was replaced and has another
        tool with this name.

        Raises:
            CallError: as raised by ``bind_arguments``.
        """
        if tool is not self._tool:
            return catalog.bind(tool, self.request.arguments)
        if isinstance(self._arguments, CallError):
            raise self._arguments
        return self._arguments


async def prepared(catalog: ToolCatalog, session: Session, request: ToolCall) -> ToolCall | PreparedCall:
    """Prepares a call for ``Router.submit``. A call with many values or very long texts is validated in a thread."""
    if request.frame_bytes <= LONG_BYTES or not is_long(request.arguments):
        return request
    return await off_loop(prepare_call, catalog, session, request)


def prepare_call(catalog: ToolCatalog, session: Session, request: ToolCall) -> PreparedCall:
    """Validate and hash long arguments."""
    tool: Tool | None = None
    arguments: BoundArguments | CallError
    try:
        tool = catalog.find_tool(session.toolset, request.name, usable=session.usable)
        arguments = catalog.bind(tool, request.arguments)
    except CallError as error:
        arguments = error
    return PreparedCall(replace(request, arguments_hash=arguments_digest(request.arguments)), tool, arguments)


def replay(state: RequestIdState, session: Session, key: str, now: float) -> ToolResult | None:
    """The stored result of a repeated request id; None while its call is running.

    Raises:
        OverCapacityError: the request id is new, and the session is full.
        RequestIdConflictError: the repeat has another tool or other arguments.
        ResultExpiredError: the call has ended, and its result is gone.
    """
    if state is RequestIdState.RUNNING:
        return None
    result = session.calls.result(key, now)
    if state is RequestIdState.DONE and result is not None:
        return call_outcome.replayed(result)
    if state is RequestIdState.FULL:
        raise session_is_full(session.calls.max_accepted)
    if state is RequestIdState.CONFLICT:
        raise RequestIdConflictError
    raise ResultExpiredError.of_call(started=session.calls.started(key))


def conflict_of(session: Session, request: ToolCall, now: float) -> RequestIdConflictError | None:
    """The error of a call whose request id belongs to another call; None for all other calls.

    For transports in which each request takes over the session: a request that ``Router.submit`` would refuse must not
    take the session away from the connection that waits for the other call.
    """
    key = request_key(request.request_id)
    state = session.calls.classify(key, request.name, request, now)
    return RequestIdConflictError() if state is RequestIdState.CONFLICT else None
