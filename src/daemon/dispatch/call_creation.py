"""Creates calls, from their session, parent and tool."""

import time

from ...fairness import Permits, RunPermit
from ...protocol.tool_call import Json, ToolCall
from ...tools import AdaptedValues, BoundArguments, Tool, default_notices
from .nesting import ROOT, Nesting
from .running_call import CallPort, ChildScope, RunningCall, Session
from .usage_meter import UsageMeter


def make_call(
    *,
    call_id: str,
    key: str,
    session: Session,
    request: ToolCall,
    tool: Tool,
    arguments: BoundArguments,
    port: CallPort,
    permits: Permits,
    started: float,
    deadline: float,
    timeout_lowered: bool = False,
    started_at: float | None = None,
    parent: RunningCall | None = None,
    nesting: Nesting | None = None,
    detached: bool = False,
) -> RunningCall:
    """A new call: a client's call, a child of ``parent`` with this ``nesting``, or a detached call. ``permits`` are the
    daemon's permits.
    """
    notices: tuple[str, ...] = ()
    current: dict[str, Json] | None = None
    if isinstance(arguments, AdaptedValues):
        arguments, notices, current = arguments
    elif session.former and not isinstance(arguments, dict):  # a client of an earlier server
        notices = default_notices(arguments)
    if request.name != tool.name:
        notices = (f"{request.name} is now {tool.name}.", *notices)
    call = RunningCall(
        id=call_id,
        key=key,
        session=session,
        request=request,
        tool=tool,
        arguments=arguments,
        current_arguments=current,
        port=port,
        permit=RunPermit(session.permits, permits, session.principal.name, session.id),
        started=started,
        started_at=time.time() if started_at is None else started_at,
        deadline=deadline,
        timeout_lowered=timeout_lowered,
        last_sent_at=started,
        meter=UsageMeter(),
    )
    if tool.mask is not None:
        call.mask = tool.mask
    if notices:
        call.argument_notices = notices
        if parent is None and tool.has_former_name(request.arguments):
            session.former = True
    if parent is not None:
        call.parent = parent
        call.within, call.run_budget = parent.within, parent.run_budget
    if detached:
        call.detached = True
    if tool.orchestration:
        call.child_scope = _child_scope(call_id, parent, key, nesting or ROOT.below(tool, hidden=False))
    return call


def side_scope(call: RunningCall) -> ChildScope:
    """The scope of a call that makes child calls, although its tool is not an orchestration tool."""
    outer = call.parent_scope
    return _child_scope(call.id, call.parent, call.key, ROOT if outer is None else outer.nesting)


def _child_scope(call_id: str, parent: RunningCall | None, key: str, nesting: Nesting) -> ChildScope:
    """The scope of a new orchestration call. A child's ``run`` is its parent's ``run`` followed by the child's name, so
    resuming the parent resumes the child.
    """
    scope = parent.child_scope if parent is not None else None
    return ChildScope(
        run=f"{scope.run}/{key}" if scope else call_id,
        resumed=scope.resumed if scope else False,
        nesting=nesting,
        names=set(),
        active=set(),
        meter=UsageMeter(),
    )
