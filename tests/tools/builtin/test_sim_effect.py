"""``sim_effect`` writes a line for each execution, before it waits."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import EFFECT_LOG, bind, simulated_tools


async def test_each_execution_writes_one_line_before_it_waits(tmp_path: Path, context: Any) -> None:
    """The line is in the log while the call still runs. Concurrent lines do not mix, and only the owner can read the
    log.
    """
    log = tmp_path / EFFECT_LOG
    (effect,) = simulated_tools(log)

    async def run(text: str, delay_ms: float) -> Any:
        return await effect.function(bind(effect, {"text": text, "delay_ms": delay_ms}), context)

    hanging = asyncio.create_task(run("first", 600_000))
    await asyncio.sleep(0)
    assert log.read_text() == "first\n"
    hanging.cancel()
    assert await asyncio.gather(*(run(f"{n}", 0) for n in range(20))) == [f"written: {n}" for n in range(20)]
    assert sorted(log.read_text().split()) == sorted(["first", *map(str, range(20))])
    assert log.stat().st_mode & 0o777 == 0o600


def test_annotations_mark_a_write_that_must_not_run_twice(tmp_path: Path) -> None:
    """The annotations require a journal entry. Text with a line break is refused, because it would
    count as two effects.
    """
    (effect,) = simulated_tools(tmp_path / EFFECT_LOG)
    assert not effect.annotations.read_only_hint
    assert not effect.annotations.idempotent_hint
    assert not effect.local
    assert not effect.repeatable
    with pytest.raises(InvalidArgumentsError):
        bind(effect, {"text": "one\ntwo"})
