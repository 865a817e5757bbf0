"""The daemon that a run starts: it is simulated, uses the matrix's files, and ends with the run."""

import sys
from pathlib import Path

import pytest
from toold.client import ConnectionFailedError, MCPWebSocketClient

from baseline.collecting import CollectionError
from baseline.own_daemon import environment_for, own_daemon

pytestmark = pytest.mark.process


def test_user_settings_do_not_reach_the_daemon() -> None:
    """The user's keys and settings do not reach the daemon; the workspace does."""
    env = {"PATH": "/bin", "KIMI_API_KEY": "k", "TOOLD_PORT": "1", "EXAI_WS_PORT": "2", "SUPABASE_URL": "x"}
    assert environment_for(env, Path("/files")) == {"PATH": "/bin", "TOOLD_WORKSPACE": "/files"}


async def test_daemon_runs_during_the_block(tmp_path: Path) -> None:
    """The daemon answers calls during the block, and no longer listens after it."""
    with own_daemon(tmp_path) as own:
        async with MCPWebSocketClient(own.url, token=own.token) as client:
            status = (await client.call("status", {})).structured
    assert any(provider["simulated"] for provider in status["providers"])
    assert own.token is not None
    assert own.token not in repr(own)
    with pytest.raises(ConnectionFailedError):
        async with MCPWebSocketClient(own.url, token=own.token) as client:
            await client.connect(max_retries=1)


def test_failed_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the daemon ends during its start, that is an error with the end of its output."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CollectionError, match="the daemon did not start"), own_daemon(tmp_path):
        pass
