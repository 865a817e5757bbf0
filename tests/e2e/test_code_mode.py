"""Programs on a running daemon: their calls are ordinary calls, and no program affects other calls."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from tests.waiting import until

BOMBS = {
    "cpu": "while True:\n    pass",
    "memory": "x = []\nwhile True:\n    x.append('a' * 1000)",
    "output": "while True:\n    print('x' * 10000)",
    "calls": (
        "for _ in range(1000):\n    try:\n        await tools.echo(text='x')\n    except BaseException:\n        pass"
    ),
    "time": "await bad_tools.bad_hangs(seconds=60.0)",
}
LITTLE = {
    "TOOLD_CODE_CPU_S": "2",
    "TOOLD_CODE_MEMORY_BYTES": str(24 * 1024**2),
    "TOOLD_CODE_CALLS": "50",
}


def workers(pid: int) -> list[psutil.Process]:
    """The daemon's sandbox workers."""
    return [child for child in psutil.Process(pid).children() if "monty" in child.name()]


async def running(peer: Any) -> int:
    """The number of run permits in use."""
    in_use: int = (await peer.status())["limits"]["running"]["in_use"]
    return in_use


async def test_the_calls_of_a_program_are_recorded_as_its_children(caller: Any) -> None:
    """They take the call path of every call; a program can catch a tool's error, which is listed."""
    code = (
        "texts = await asyncio.gather(*[tools.echo(text=str(n)) for n in range(3)])\n"
        "try:\n    await tools.read_result(handle='nothing')\nexcept ToolError as e:\n    texts.append(e.code)\n"
        "return texts"
    )
    answer = await caller.call(uuid4().hex, "execute_code", code="import asyncio\n" + code)
    assert answer["error"] is None, answer
    assert answer["structured"]["value"] == ["0", "1", "2", "NOT_FOUND"]
    result = [(call["tool"], call["ok"]) for call in answer["structured"]["calls"]]
    assert result == [("echo", True), ("echo", True), ("echo", True), ("read_result", False)]


async def test_a_program_can_call_only_tools_of_its_toolset(start_daemon: Any, tmp_path: Path) -> None:
    """A tool outside the toolset does not exist for the program."""
    (tmp_path / "toold.toml").write_text('[toolsets.small]\ninclude = ["echo", "execute_code"]\n')
    daemon = start_daemon()
    async with daemon.peer(toolset="small") as peer:
        answer = await peer.call("in", "execute_code", code="return await tools.echo(text='yes')")
        assert answer["structured"]["value"] == "yes"
        answer = await peer.call("out", "execute_code", code="await tools.sim_effect(text='no')")
        assert answer["error"]["code"] == "VALIDATION_ERROR"
        assert "there is no tools.sim_effect" in answer["error"]["message"]
    assert daemon.stop() == 0


async def test_a_resource_bomb_does_not_affect_other_calls(start_daemon: Any) -> None:
    """Each bomb ends with its error while other calls are answered; permits are released, and the next program runs."""
    daemon = start_daemon(**LITTLE)
    async with daemon.peer() as bombs, daemon.peer(session_id="another") as other:
        for bound, code in BOMBS.items():
            await bombs.send(
                op="call_tool",
                request_id=bound,
                name="execute_code",
                arguments={"code": code, "timeout_s": 1 if bound == "time" else 120},
            )
            felt = await other.call(uuid4().hex, "echo", text=bound)
            assert felt["error"] is None
            answer = await bombs.until("call_tool_res", bound)
            assert answer["error"] is not None, (bound, answer)
            assert answer["error"]["details"]["bound"] == bound
        assert await running(other) == 0
        repeat = await bombs.call("again", "execute_code", code="return 1")
        assert repeat["structured"]["value"] == 1
    assert daemon.stop() == 0
    assert not daemon.tracebacks()


async def test_a_killed_worker_ends_only_its_program(start_daemon: Any) -> None:
    """Its child calls end, other calls continue, and the next program gets a new worker."""
    daemon = start_daemon(**LITTLE)
    async with daemon.peer() as peer:
        await peer.send(
            op="call_tool",
            request_id="killed",
            name="execute_code",
            arguments={"code": "await bad_tools.write_hangs(seconds=60.0)"},
        )
        await until(lambda: workers(daemon.process.pid))
        answered = asyncio.ensure_future(peer.until("call_tool_res", "killed"))
        while not answered.done():  # before it waits for the tool, the program may not have started
            for worker in workers(daemon.process.pid):
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()
            await asyncio.sleep(0.05)
        error = (await answered)["error"]
        assert error["code"] == "TOOL_EXECUTION_ERROR"
        assert "process that ran the program died" in error["message"]
        assert (await peer.call("echo", "echo", text="on"))["error"] is None
        assert (await peer.call("again", "execute_code", code="return 1"))["structured"]["value"] == 1
    assert daemon.stop() == 0


async def test_cancelling_a_program_cancels_its_calls(start_daemon: Any) -> None:
    """Its child calls are cancelled, and their permits released."""
    daemon = start_daemon(**LITTLE)
    async with daemon.peer() as peer:
        await peer.send(
            op="call_tool",
            request_id="long",
            name="execute_code",
            arguments={"code": "import asyncio\nawait asyncio.gather(*[bad_tools.bad_hangs() for _ in range(4)])"},
        )
        async with asyncio.timeout(60):
            while await running(peer) < 4:
                await asyncio.sleep(0.01)
        await peer.send(op="cancel", request_id="long")
        answer = await peer.until("call_tool_res", "long")
        assert answer["error"]["code"] == "CANCELLED"
        assert await running(peer) == 0
        assert (await peer.call("again", "execute_code", code="return 1"))["structured"]["value"] == 1
    assert daemon.stop() == 0


@pytest.mark.parametrize("hello", [{}, {"toolset": "code"}])
async def test_execute_code_works_with_any_presentation(daemon: Any, hello: dict[str, str]) -> None:
    """``execute_code`` can be called even if it is not listed."""
    async with daemon.peer(**hello) as peer:
        answer = await peer.call(uuid4().hex, "execute_code", code="return (await tools.version())['name']")
        assert answer["structured"]["value"] == "toold"
