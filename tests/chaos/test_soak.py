"""A soak of seconds: clients come and go, the daemon is sampled, and the report says what was seen."""

from pathlib import Path

import pytest
from tests.chaos.flat import FEWEST
from tests.chaos.soak import report, soak


@pytest.mark.process
async def test_clients_come_and_go_while_the_daemon_is_sampled(tmp_path: Path) -> None:
    """Every kind of client comes, calls are answered, and each figure has its line; too short for a verdict."""
    done = await soak(tmp_path, seconds=3.0, every_s=0.1)
    assert done.clients.keys() == {"resuming", "plain", "leaving", "idle"}
    assert done.calls["ok"] > 0
    assert done.calls["left"] > 0
    assert all(len(samples) >= FEWEST for samples in done.samples.values())
    assert min(done.connections) >= 20  # those that are idle
    said = report(done, 3.0)
    for name in ("memory", "open files", "threads"):
        (line,) = [line for line in said.splitlines() if line.startswith(name)]
        assert line.endswith(("flat", "NOT FLAT"))
