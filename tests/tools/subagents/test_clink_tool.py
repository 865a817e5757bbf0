"""``clink`` runs a configured program in the workspace: bounded, with few variables, and no longer than its call."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import (
    CallError,
    CallTimeoutError,
    InvalidArgumentsError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from toold.testing import daemon_under_test
from toold.tools.subagents.clink_tool import MAX_SUBAGENTS
from toold.tools.subagents.subagent_process import MAX_OUTPUT_BYTES

PROGRAMS = {
    "shows": 'echo "in $(pwd)"; env | sort; cat',
    "fails": "echo half an answer; echo 'no login: run agent login' >&2; exit 3",
    "floods": "cat > /dev/null; yes flood",
    "hangs": "sleep 1000 & echo $$ $! > pids; wait",
    "leaves": "cat > /dev/null; sleep 1000 & echo $! > pids; echo done",
    "waits": "echo $$ >> started; while [ ! -e go ]; do sleep 0.05; done; echo over",
    "claude": "cat > /dev/null; cat claude.json",
}
"""Subagents and the shell programs that stand for them; each reads its prompt from stdin."""
CLAUDE = {
    "type": "result",
    "is_error": False,
    "result": "All is well.",
    "usage": {"input_tokens": 5, "service_tier": "standard"},
    "total_cost_usd": 0.25,
    "modelUsage": {"claude-opus-5": {}},
}


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starts_processes: None) -> AsyncIterator[Any]:
    """A client of a daemon with these subagents, and with secrets in its environment."""
    monkeypatch.setenv("KIMI_API_KEY", "sk-secret")
    monkeypatch.setenv("AGENT_KEY", "for the agent")
    tables = [
        f"[clink.{name}]\ncommand = ['/bin/sh', '-c', {json.dumps(program)}]\nenv = ['AGENT_KEY']\n"
        for name, program in PROGRAMS.items()
    ]
    tables += ["output = 'claude'\n", "[clink.absent]\ncommand = ['no-such-agent']\n"]
    (tmp_path / "toold.toml").write_text("".join(tables))
    (tmp_path / "workspace").mkdir()
    async with daemon_under_test(
        workspace=tmp_path / "workspace", env={"TOOLD_CONFIG": str(tmp_path / "toold.toml")}
    ) as daemon:
        yield daemon.client


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def failure(client: MCPWebSocketClient, name: str) -> CallError:
    with pytest.raises(CallError) as raised:
        await client.call("clink", {"prompt": "Go.", "cli_name": name}, timeout=60)
    return raised.value


async def test_a_subagent_gets_its_task_and_few_variables(client: MCPWebSocketClient, tmp_path: Path) -> None:
    """It runs in the workspace with role, conversation, task and paths, and without the daemon's keys."""
    workspace = tmp_path / "workspace"
    (workspace / "a.py").write_text("x = 1\n")
    first = await client.call("chat", {"prompt": "It was a harbour."})
    answer = await client.call(
        "clink",
        {
            "prompt": "Second task.",
            "cli_name": "shows",
            "role": "codereviewer",
            "files": [str(workspace / "a.py"), "."],
            "continuation_id": first.structured["continuation_id"],
        },
    )
    shown, mark, task = answer.structured["text"].partition("Review;")
    place, *lines = shown.splitlines()
    assert place == f"in {workspace}"
    variables = {line.partition("=")[0] for line in lines}
    assert {"AGENT_KEY", "HOME", "PATH"} <= variables
    assert not [name for name in variables if name.startswith(("TOOLD_", "KIMI_", "GLM_", "PYTEST_"))]
    parts = ("It was a harbour.", "Second task.", f"- {workspace}/a.py", f"- {workspace}\n")
    places = [f"{task}\n".index(part) for part in parts]
    assert mark
    assert places == sorted(places)
    follow_up = await client.call(
        "chat", {"prompt": "And then?", "continuation_id": answer.structured["continuation_id"]}
    )
    assert follow_up.structured["continuation_id"] == first.structured["continuation_id"]


async def test_json_of_a_known_program_is_read(client: MCPWebSocketClient, tmp_path: Path) -> None:
    """The answer, the model and the tokens come from the program's JSON."""
    (tmp_path / "workspace" / "claude.json").write_text(json.dumps(CLAUDE))
    answer = await client.call("clink", {"prompt": "Go.", "cli_name": "claude"})
    assert answer.structured["text"] == "All is well."
    assert answer.structured["model"] == "claude-opus-5"
    assert answer.structured["reported_usage"] == {"input_tokens": 5, "total_cost_usd": 0.25}
    (tmp_path / "workspace" / "claude.json").write_text(json.dumps(CLAUDE | {"is_error": True, "result": "Log in."}))
    assert "claude reports an error (it said: Log in.)" in (await failure(client, "claude")).message


async def test_failures_say_what_happened(client: MCPWebSocketClient) -> None:
    """An exit status with the end of stderr, too much output, and a program that is not installed are clear errors."""
    failed = await failure(client, "fails")
    assert isinstance(failed, ToolExecutionError)
    assert failed.message == (
        "fails exited with status 3 (it said: half an answer; stderr: no login: run agent login)."
    )
    assert failed.details == {"exit_status": 3}
    assert f"more than {MAX_OUTPUT_BYTES:,} bytes" in (await failure(client, "floods")).message
    absent = await failure(client, "absent")
    assert isinstance(absent, ServiceUnavailableError)
    assert "is not installed" in absent.message
    with pytest.raises(InvalidArgumentsError, match="cli_name should be 'shows', 'fails'"):
        await client.call("clink", {"prompt": "Go.", "cli_name": "gemini"})
    with pytest.raises(InvalidArgumentsError, match=r"images\.0: A subagent opens files of the workspace"):
        await client.call("clink", {"prompt": "Go.", "cli_name": "shows", "images": ["data:image/png;base64,AA=="]})


async def test_a_subagent_ends_with_its_call(client: MCPWebSocketClient, tmp_path: Path) -> None:
    """A cancelled call ends the program and the processes that it started."""
    pids = tmp_path / "workspace" / "pids"
    call = asyncio.create_task(client.call("clink", {"prompt": "Go.", "cli_name": "hangs"}))
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    group = [int(pid) for pid in pids.read_text().split()]
    assert all(map(is_running, group))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: not any(map(is_running, group)))


async def test_processes_left_behind_do_not_delay_the_answer(client: MCPWebSocketClient, tmp_path: Path) -> None:
    """A program's background process that holds stdout is ended after the program; the answer is complete."""
    answer = await client.call("clink", {"prompt": "Go.", "cli_name": "leaves"})
    assert answer.structured["text"] == "done"
    pid = int((tmp_path / "workspace" / "pids").read_text())
    await until(lambda: not is_running(pid))


async def test_few_subagents_run_at_a_time(client: MCPWebSocketClient, tmp_path: Path) -> None:
    """A further call waits until one of the running subagents ends; at its deadline it has started none."""
    started = tmp_path / "workspace" / "started"
    waiting = {"prompt": "Go.", "cli_name": "waits"}
    calls = [asyncio.create_task(client.call("clink", waiting)) for _ in range(MAX_SUBAGENTS)]
    await until(lambda: started.exists() and len(started.read_text().split()) == MAX_SUBAGENTS)
    with pytest.raises(CallTimeoutError):
        await client.call("clink", {"prompt": "Go.", "cli_name": "leaves"}, timeout=1)
    assert not (tmp_path / "workspace" / "pids").exists()
    (tmp_path / "workspace" / "go").touch()
    assert {answer.structured["text"] for answer in await asyncio.gather(*calls)} == {"over"}
    assert (await client.call("clink", {"prompt": "Go.", "cli_name": "leaves"})).structured["text"] == "done"


async def test_without_a_configured_program_the_tool_does_not_exist() -> None:
    """By default no program can be started: ``clink`` is not listed and cannot be called."""
    async with daemon_under_test() as daemon:
        assert "clink" not in {tool.name for tool in await daemon.client.list_tools()}
        with pytest.raises(CallError, match="There is no tool 'clink'"):
            await daemon.client.call("clink", {"prompt": "Go."})
