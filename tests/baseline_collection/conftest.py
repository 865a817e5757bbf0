"""Fixtures: synthetic calls and records for the tests of calculations, and a simulated daemon for the tests that make
calls.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from toold.client import MCPWebSocketClient
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running

from baseline.matrix import SHIPPED, workspace_of
from baseline.record import Call, Configuration, Environment, Load, Machine, Record
from baseline.summary import summaries

ONE = Load(concurrency=1)
MakeCall = Callable[..., Call]
MakeRecord = Callable[..., Record]


@pytest.fixture(scope="session")
def make_call() -> MakeCall:
    """A function that makes a call of ``echo``. By default the call succeeds within 2 ms."""

    def make(**fields: Any) -> Call:
        plain: dict[str, Any] = {
            "tool_name": "echo",
            "iteration": 1,
            "load": ONE,
            "round": 1,
            "segment": 1,
            "status": "success",
            "timestamp": "2026-01-01T12:00:00+00:00",
            "offset_s": 0.0,
            "latency_ms": 2.0,
            "late_ms": 0.0,
        }
        return Call(**plain | fields)

    return make


@pytest.fixture(scope="session")
def make_record() -> MakeRecord:
    """A function that makes a record of the given calls."""

    def make(calls: Sequence[Call] = (), **fields: Any) -> Record:
        tools = tuple(dict.fromkeys(call.tool_name for call in calls)) or ("echo",)
        configuration = Configuration(
            daemon="simulate",
            toolset=None,
            tools=tools,
            arguments={name: {"text": "a line"} for name in tools},
            loads=tuple(dict.fromkeys(call.load for call in calls)) or (ONE,),
            iterations=3,
            warmup=0,
            rounds=1,
            timeout_s=None,
        )
        plain: dict[str, Any] = {
            "id": "run-1",
            "started": "2026-01-01T12:00:00+00:00",
            "complete": True,
            "simulated": False,
            "environment": Environment(
                machine=Machine(
                    system="Linux", processor="a CPU", cores=2, memory_mib=1024, load_average=(0.1, 0.1, 0.1)
                ),
                python="CPython 3.11.7",
                packages={"toold": "0.1.0"},
                commit=None,
                daemon="toold 0.1.0",
            ),
            "configuration": configuration,
            "calls": tuple(calls),
            "summaries": tuple(summaries(calls)),
        }
        return Record(**plain | fields)

    return make


@pytest.fixture
async def connect(tmp_path: Path) -> AsyncIterator[Callable[[], MCPWebSocketClient]]:
    """A function that makes clients of a simulated daemon, which runs in this process."""
    flags = {"port": "0", "http_port": "0", "simulate": "true", "kimi_sdk": "http", "glm_sdk": "http"}
    env = {f"TOOLD_{name.upper()}": value for name, value in flags.items()}
    env |= {"TOOLD_STATE_DIR": str(tmp_path / "state"), "TOOLD_WORKSPACE": str(workspace_of(SHIPPED))}
    async with running(load_settings({}, env=env, cwd=tmp_path)) as daemon:
        token = (tmp_path / "state/token").read_text("ascii").strip()
        port = daemon.websocket.port
        yield lambda: MCPWebSocketClient("127.0.0.1", port, token, workspace=workspace_of(SHIPPED), toolset="full")
