"""A real Phoenix as the collector of traces."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.daemon_environment import daemon_environment
from tests.peers.conftest import Phoenix
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.protocol.trace_context import trace_id_of

pytestmark = [pytest.mark.large_peer, pytest.mark.timeout(600)]

SCRIPT = [
    {"calls": [{"name": "sim_effect", "arguments": {"text": "once"}}]},
    {"text": "It is done.", "delay_s": 30},
]
NAMES = [
    "invoke_agent writer",
    "chat glm-4.7-flash",
    *(f"execute_tool {tool}" for tool in ("agent_snapshot", "agent_turn", "sim_effect")),
]
"""The spans of the run; the calls that ask for its state have other names."""
AGENT = """
[agents.writer]
description = "Writes."
prompt = "Write what you are asked to."
tools = ["sim_effect"]
"""


def spans_in(phoenix: Phoenix, project: str) -> list[dict[str, Any]]:
    """What Phoenix has of a project; nothing before its first span."""
    url = f"{phoenix.url}/v1/projects/{project}/spans"
    answer = httpx.get(
        url, params={"limit": 1000, "name": NAMES}, headers={"Authorization": f"Bearer {phoenix.key}"}, timeout=60
    )
    spans: list[dict[str, Any]] = answer.json()["data"] if answer.is_success else []
    return spans


@contextmanager
def serving(directory: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon with the agent, whose state outlives it."""
    (directory / "toold.toml").write_text(AGENT)
    env = daemon_environment(directory / "state", HOME=str(directory), **settings)
    flags = ["--simulate", "--port", "0", "--http-port", "0"]
    (directory / "state" / "daemon.json").unlink(missing_ok=True)
    with (directory / "daemon.log").open("ab") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "toold", "serve", *flags], env=env, cwd=directory, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 60
        while not (directory / "state" / "daemon.json").exists():
            assert daemon.poll() is None, (directory / "daemon.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield daemon
    finally:
        daemon.terminate()
        daemon.wait(timeout=60)


def client_of(directory: Path) -> MCPWebSocketClient:
    address = json.loads((directory / "state" / "daemon.json").read_text())
    token = (directory / "state" / "token").read_text().strip()
    return MCPWebSocketClient(f"ws://127.0.0.1:{address['port']}/", token=token)


async def test_a_run_of_an_agent_is_one_trace_over_a_kill(phoenix: Phoenix, tmp_path: Path) -> None:
    """Phoenix shows its agent, its models with their tokens and messages, and its tools, each below its parent; the
    daemon was killed while it asked a model."""
    settings = {
        "TOOLD_OTEL__ENDPOINT": phoenix.url,
        "TOOLD_OTEL__PROJECT": "runs",
        "TOOLD_OTEL__CONTENT": "full",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{phoenix.key}",
    }
    with serving(tmp_path, **settings) as daemon:
        async with client_of(tmp_path) as client:
            arguments = {"prompt": f"Write. [[sim:script={json.dumps(SCRIPT)}]]", "detach": True}
            run = (await client.call("writer", arguments)).structured["call_id"]
            await until(lambda: any(span["name"] == "execute_tool sim_effect" for span in spans_in(phoenix, "runs")))
        os.kill(daemon.pid, signal.SIGKILL)
        daemon.wait()
    before = spans_in(phoenix, "runs")
    with serving(tmp_path, **settings):
        async with client_of(tmp_path) as client:

            async def ended() -> bool:
                return bool((await client.call("call_status", {"call_id": run})).structured["state"] == "done")

            await until(ended)
            await until(lambda: sum(span["name"] == "invoke_agent writer" for span in spans_in(phoenix, "runs")) == 2)
    spans = {span["context"]["span_id"]: span for span in spans_in(phoenix, "runs")}
    agents = [span for span in spans.values() if span["name"] == "invoke_agent writer"]
    (root,) = (span for span in agents if span["parent_id"] is None)
    trace = root["context"]["trace_id"]
    assert trace == trace_id_of(root["attributes"]["gen_ai.tool.call.id"]).hex()
    in_trace = [span for span in spans.values() if span["context"]["trace_id"] == trace]
    assert {span["parent_id"] for span in in_trace} - spans.keys() == {None}
    assert {span["context"]["span_id"] for span in before} < {span["context"]["span_id"] for span in in_trace}
    kinds = {span["name"].partition(" ")[0]: span["span_kind"] for span in in_trace}
    assert kinds == {"invoke_agent": "AGENT", "chat": "LLM", "execute_tool": "TOOL"}
    chats = [span["attributes"] for span in in_trace if span["name"].startswith("chat ")]
    assert all(chat["gen_ai.usage.input_tokens"] > 0 for chat in chats)
    assert "It is done." in str(chats)
    assert (tmp_path / "state" / "sim_effect.log").read_text().count("once") == 1
