"""``toolcall_log_tail`` lists the caller's own audit rows."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.tool_call import Principal
from toold.tools import ToolOutput, bind
from toold.tools.builtin.toolcall_log_tail import toolcall_log_tail

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

ROW = {
    "id": "c-1", "tool": "chat", "outcome": "TIMEOUT", "message": "too late", "latency_ms": 12.4, "model": "k2",
    "input_tokens": 3, "output_tokens": 4, "arguments": {"prompt": "str(5)"},
}  # fmt: skip


async def run(context: "Context", **arguments: Any) -> ToolOutput:
    answer = await toolcall_log_tail.function(bind(toolcall_log_tail, arguments), context)
    assert isinstance(answer, ToolOutput)
    return answer


async def test_audit_rows_are_returned_unchanged(context: "Context") -> None:
    """The text has one line per call. The data are the stored rows."""
    context.daemon.log = [ROW, {**ROW, "id": "c-0", "outcome": "ok", "message": None, "model": None, "input_tokens": 0}]
    answer = await run(context)
    assert answer.text == "c-1 chat TIMEOUT: too late (12 ms, k2, 3+4 tokens)\nc-0 chat ok (12 ms)"
    assert answer.data == context.daemon.log
    context.daemon.log = []
    assert (await run(context)).text == "no such call"


async def test_filters_are_passed_to_the_store(context: "Context") -> None:
    """The query has the filters and the caller's principal."""
    context.principal = Principal("ann")
    await run(context, tool="chat", outcome="error", limit=3)
    assert context.daemon.wanted == {"principal": "ann", "limit": 3, "tool": "chat", "outcome": "error"}


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": 201}, {"tool": 7}, {"outcome": ["ok"]}])
def test_invalid_arguments_are_refused(arguments: dict[str, Any]) -> None:
    """``limit`` is 1 to 200, and the filters are strings."""
    with pytest.raises(InvalidArgumentsError, match=next(iter(arguments))):
        bind(toolcall_log_tail, arguments)
