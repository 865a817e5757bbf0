"""A journalled child call that was refused, such as a call of an unknown tool. The refusal is its result.

Its parent acts on the refusal, so a resumed run gets the same refusal, even if the call would be possible by then.
"""

import time

from ...fairness import Permits
from ...protocol.error_codes import CallError
from ...protocol.tool_call import Annotations, ToolCall
from ...tools import Arguments, Tool, ToolContext
from .call_creation import make_call
from .running_call import CallPort, RunningCall


class _Unbound(Arguments):
    """The arguments of a refused call are not bound."""


def refused_child(
    call_id: str, request: ToolCall, error: CallError, port: CallPort, permits: Permits, parent: RunningCall
) -> RunningCall:
    """Makes a journalled child that only fails with this error."""

    async def refuse(_arguments: _Unbound, _context: ToolContext) -> None:
        raise error

    annotations = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    tool = Tool(request.name, "A call that was refused.", _Unbound, refuse, annotations, unmetered=True)
    child = make_call(
        call_id=call_id,
        key=str(request.request_id),
        session=parent.session,
        request=request,
        tool=tool,
        arguments=_Unbound(),
        port=port,
        permits=permits,
        started=time.monotonic(),
        deadline=parent.deadline,
        parent=parent,
    )
    child.journalled = True
    return child
