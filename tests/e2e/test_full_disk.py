"""A full disk: the daemon reports it, local calls continue, and calls that need the journal are rejected."""

import asyncio
from pathlib import Path
from typing import Any

from tests.full_disk import largest_file


async def refused(peer: Any, number: int) -> dict[str, Any] | None:
    """The error of a write under a new id."""
    error: dict[str, Any] | None = (await peer.call(f"w{number}", "sim_effect", text=f"full-{number}"))["error"]
    return error


async def test_a_full_disk_rejects_only_journalled_calls(start_daemon: Any) -> None:
    """Writes are rejected with executed no; echo answers; health has the reason; afterwards everything works."""
    daemon = start_daemon(TOOLD_LOG_FORMAT="json")
    effects = Path(daemon.state / "sim_effect.log")
    async with daemon.peer(features=["resume"]) as peer:
        assert (await peer.call("before", "sim_effect", text="before"))["error"] is None
        with largest_file(0, daemon.process.pid):
            for number in range(3):
                error = await refused(peer, number)
                assert error is not None
                assert (error["code"], error["executed"], error["retryable"]) == ("SERVICE_UNAVAILABLE", "no", True)
                assert "could not be persisted" in error["message"]
                assert str(daemon.state) not in error["message"]
            assert (await peer.call("local", "echo", text="still here"))["error"] is None
            async with asyncio.timeout(20):
                while not (await peer.status())["problems"]:
                    await asyncio.sleep(0.05)
            async with daemon.peer(features=["resume"]) as newcomer:
                assert newcomer.ack["durability"] == "memory"
        async with asyncio.timeout(20):
            number = 10
            while await refused(peer, number):
                await asyncio.sleep(0.1)
                number += 1
            while (await peer.status())["problems"]:
                await asyncio.sleep(0.1)
    assert effects.read_text().split() == ["before", f"full-{number}"]
    assert daemon.stop() == 0
    assert not daemon.tracebacks()


async def test_a_removed_database_is_detected(start_daemon: Any) -> None:
    """Writes are rejected, no session claims to be persisted, and health has advice."""
    daemon = start_daemon()
    async with daemon.peer(features=["resume"]) as peer:
        assert (await peer.call("before", "sim_effect", text="before"))["error"] is None
        for path in daemon.state.glob("toold.db*"):
            path.unlink()
        error = await refused(peer, 1)
        assert error is not None
        assert (error["code"], error["executed"]) == ("SERVICE_UNAVAILABLE", "no")
        assert "restart the daemon" in error["message"]
        assert (await peer.call("local", "echo", text="still here"))["error"] is None
        assert any("restart the daemon" in problem for problem in (await peer.status())["problems"])
        async with daemon.peer(features=["resume"]) as newcomer:
            assert newcomer.ack["durability"] == "memory"
    assert (daemon.state / "sim_effect.log").read_text().split() == ["before"]
    assert list(daemon.state.glob("toold.db*")) == []
    assert daemon.stop() == 0
    assert not daemon.tracebacks()
