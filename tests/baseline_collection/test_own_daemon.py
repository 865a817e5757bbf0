"""The daemon of a run's own: it is simulated, reads the matrix's files, and is gone afterwards."""

import sys
from pathlib import Path

import pytest
from toold.client import ConnectionFailedError, MCPWebSocketClient

from baseline.collecting import CollectionError
from baseline.own_daemon import environment_for, own_daemon

pytestmark = pytest.mark.process


def test_settings_of_others_are_left_out() -> None:
    """Keys and settings of whoever runs it do not reach the daemon; its workspace does."""
    env = {"PATH": "/bin", "KIMI_API_KEY": "k", "TOOLD_PORT": "1", "EXAI_WS_PORT": "2", "SUPABASE_URL": "x"}
    assert environment_for(env, Path("/files")) == {"PATH": "/bin", "TOOLD_WORKSPACE": "/files"}


async def test_it_answers_and_is_gone(tmp_path: Path) -> None:
    """It takes calls while the block lasts, and nobody listens there afterwards."""
    with own_daemon(tmp_path) as own:
        async with MCPWebSocketClient(own.url, token=own.token) as client:
            status = (await client.call("status", {})).structured
    assert any(provider["simulated"] for provider in status["providers"])
    assert own.token is not None
    assert own.token not in repr(own)
    with pytest.raises(ConnectionFailedError):
        async with MCPWebSocketClient(own.url, token=own.token) as client:
            await client.connect(max_retries=1)


def test_one_that_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that ends at its start is an error with the end of what it said."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CollectionError, match="the daemon did not start"), own_daemon(tmp_path):
        pass
