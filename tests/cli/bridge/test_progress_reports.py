"""Progress to the editor."""

from __future__ import annotations

from tests.cli.bridge.conftest import channel
from toold.cli.bridge.progress_reports import reporting
from toold.protocol.tool_call import Progress


async def test_of_many_reports_the_last_is_told() -> None:
    """An editor is told no more than it takes, and the last one before the answer."""
    async with channel() as (lines, editor, _):
        async with reporting(lines, "t") as note:
            assert note is not None
            for number in range(1000):
                note(Progress(f"{number}", number))
        await lines.write(b'{"after":true}')
        told = []
        while "after" not in (message := await editor.receive()):
            told.append(message["params"]["message"])
    assert told[-1] == "999"
    assert len(told) < 10


async def test_without_a_token_nothing_is_told() -> None:
    """The daemon is not even asked for reports."""
    async with channel() as (lines, _, _), reporting(lines, None) as note:
        assert note is None
