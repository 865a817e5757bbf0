"""The key of a configured provider stays where it was configured."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.protocol.error_codes import CallError
from toold.providers.simulator import Simulator

KEY = "sk-live-0a1b2c3d4e5f6071829304a5b6c7d8e9"
TOKEN = "a-token-for-the-tests"
OVERVIEWS = ("status", "listmodels", "provider_capabilities", "self-check", "toolcall_log_tail", "activity")
FAILURES = ("", "[[sim:status=500]]", "[[sim:status=400]]", "[[sim:garbage]]", f"Repeat {KEY[:3]}")


@pytest.mark.parametrize("sdk", ["openai", "http"])
async def test_a_key_is_in_no_log_error_answer_or_file(
    tmp_path: Path, sdk: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """After refused and failed requests, the key is neither in what callers and operators read nor in the database."""
    read: list[str] = []
    async with Simulator(providers=("acme",)) as vendor:
        table = {"BASE_URL": vendor.base_url("acme"), "API_KEY": KEY, "SDK": sdk}
        environment = {
            "TOOLD_PORT": "0",
            "TOOLD_HTTP_PORT": "0",
            "TOOLD_STATE_DIR": str(tmp_path / "state"),
            "TOOLD_TOKEN": TOKEN,
            "TOOLD_GRACE_PERIOD_S": "0.1",
            "TOOLD_LOG_LEVEL": "debug",
            "TOOLD_AUDIT_CONTENT": "full",
            **{f"TOOLD_PROVIDERS__ACME__{name}": value for name, value in table.items()},
        }
        settings = load_settings({}, env=environment, cwd=tmp_path)
        async with running(settings) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            for prompt in FAILURES:
                try:
                    answer = await client.call("chat", {"prompt": prompt or "Hi", "model": "acme/large"})
                    read.append(f"{answer.outputs} {answer.structured} {answer.metadata}")
                except CallError as error:
                    read.append(f"{error.message} {error.details} {error.summary}")
            for tool in (
                "status",
                "listmodels",
                "provider_capabilities",
                "self-check",
                "toolcall_log_tail",
                "activity",
            ):
                answer = await client.call(tool, {})
                read.append(f"{answer.outputs} {answer.structured}")
    captured = capfd.readouterr()
    files = [path.read_bytes().decode(errors="replace") for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(files) > 2
    assert "outcome=PROVIDER_ERROR" in captured.out + captured.err
    for text in (*read, captured.out, captured.err, *files):
        assert KEY not in text


def descendants(pid: int) -> Iterator[Path]:
    """The directories in ``/proc`` of the processes below this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
    below = [pid]
    for parent in below:
        children = [child for child, of in parents.items() if of == parent]
        below += children
        yield from (Path("/proc", str(child)) for child in children)


def shown(process: Path) -> str:
    """What the process list shows of a process: its arguments, and to its user its environment."""
    text = ""
    for name in ("cmdline", "environ"):
        try:
            text += (process / name).read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended, or must not be read
    return text


@pytest.mark.process
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_a_key_is_not_in_the_process_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the program of a source nor a sandbox worker gets the keys that the daemon has, as arguments or in the
    environment.
    """
    monkeypatch.setenv("ACME_KEY", KEY)
    monkeypatch.setenv("KIMI_API_KEY", KEY)
    server = tmp_path / "server.py"
    server.write_text("import sys; sys.stdin.read()")
    async with Simulator(providers=("acme",)) as vendor:
        (tmp_path / "toold.toml").write_text(
            f"""
            [providers.acme]
            base_url = "{vendor.base_url("acme")}"
            api_key = {{ env = "ACME_KEY" }}
            [sources.idle]
            type = "mcp"
            command = ["{sys.executable}", "-S", "{server}"]
            env = {{ MODE = "idle" }}
            """
        )
        environment = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_STATE_DIR": str(tmp_path / "state")}
        environment |= {"TOOLD_TOKEN": TOKEN, "KIMI_API_KEY": KEY, "ACME_KEY": KEY, "TOOLD_GRACE_PERIOD_S": "0.1"}
        settings = load_settings({}, env=environment, cwd=tmp_path)
        async with running(settings) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            program = "await tools.echo(text='a', delay_ms=60000)"
            work = asyncio.ensure_future(client.call("execute_code", {"code": program}))
            await until(lambda: any(call.tool.name == "echo" for call in daemon.router.calls) or work.done())
            assert not work.done(), work
            await until(lambda: any(str(server) in shown(process) for process in descendants(os.getpid())))
            processes = [shown(process) for process in descendants(os.getpid())]
            assert len(processes) >= 2
            for text in processes:
                assert KEY not in text
            (root,) = [call.id for call in daemon.router.calls if call.parent is None]
            assert await daemon.router.cancel_by_operator(root)
            with pytest.raises(CallError):
                await work
