"""A soak of three seconds."""

from pathlib import Path

import pytest
from tests.chaos.flat import FEWEST
from tests.chaos.soak import report, soak


@pytest.mark.process
async def test_clients_come_and_go_while_the_daemon_is_sampled(tmp_path: Path) -> None:
    """Every kind of client connects, calls are answered, and the report has a line per figure."""
    done = await soak(tmp_path, seconds=3.0, every_s=0.1)
    assert done.clients.keys() == {"resuming", "plain", "abandoning", "idle"}
    assert done.calls["ok"] > 0
    assert done.calls["abandoned"] > 0
    assert all(len(samples) >= FEWEST for samples in done.samples.values())
    assert min(done.connections) >= 20  # the idle ones
    text = report(done, 3.0)
    assert "longest logged turn of the event loop: " in text
    for name in ("memory", "open files", "threads"):
        (line,) = [line for line in text.splitlines() if line.startswith(name)]
        assert line.endswith(("flat", "NOT FLAT"))
