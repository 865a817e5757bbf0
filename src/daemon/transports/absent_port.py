"""``ABSENT_PORT`` replaces the WebSocket connection of a session that has none."""

from typing import Final

from ...protocol.tool_call import ToolResult
from ..dispatch import DisconnectedPort, RunningCall
from .call_frames import answer_frame


class AbsentPort(DisconnectedPort):
    """The ``CallPort`` of sessions without a connection."""

    def render(self, running: RunningCall, result: ToolResult) -> bytes:
        return answer_frame(running.request.request_id, running.request.echo_id, result)


ABSENT_PORT: Final = AbsentPort()
