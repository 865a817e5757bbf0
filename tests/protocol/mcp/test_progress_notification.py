"""Progress in MCP's words."""

from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.mcp.progress_notification import ProgressCounter
from toold.protocol.tool_call import Progress


@given(st.lists(st.none() | st.floats(min_value=0, max_value=1e12), min_size=1))
def test_progress_grows(numbers: list[float | None]) -> None:
    """With every report, whatever the tool counts: clients take less for a mistake."""
    counter = ProgressCounter()
    sent = [counter.count(Progress("m", done, 100.0), "t")["progress"] for done in numbers]
    assert sent == sorted(set(sent))


def test_a_tools_own_numbers_are_told() -> None:
    """They are passed on as they are while they grow, from 0 on; a tool that counts nothing has its reports counted."""
    counter = ProgressCounter()
    sent = [counter.count(Progress("m", done, 100), 7) for done in (0, 50, 100)]
    assert [one["progress"] for one in sent] == [0, 50, 100]
    assert sent[0] == {"progressToken": 7, "progress": 0, "message": "m", "total": 100}
    counter = ProgressCounter()
    assert [counter.count(Progress("m"), 7)["progress"] for _ in range(3)] == [1, 2, 3]
