"""Hooks that are programs: lines in and out, restarts, and hanging ones."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from toold.call_hooks import hook_program
from toold.protocol.error_codes import PermissionDeniedError, ServiceUnavailableError
from toold.sources import ReadRate

from .conftest import Asked

pytestmark = pytest.mark.process

LOOP = """
import json, os, sys, time
print("starting", flush=True)
print("ready", file=sys.stderr, flush=True)
for line in sys.stdin:
    question = json.loads(line)
    arguments = question["arguments"]
    answer = {"id": question["id"]}
    if "die" in arguments:
        sys.exit(3)
    if "hang" in arguments:
        time.sleep(3600)
    if "silent" in arguments:
        continue
    if "refuse" in arguments:
        answer["refuse"] = "no"
    if "show" in arguments:
        answer["arguments"] = {"pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ)}
    print(json.dumps(answer), flush=True)
"""


def program(text: str = LOOP, **more: Any) -> dict[str, Any]:
    return {"command": [sys.executable, "-c", text], "timeout_s": 30, **more}


async def test_a_program_answers_line_by_line(asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One program answers all questions; it has its own directory and variables, and no secret of the daemon."""
    monkeypatch.setenv("GLM_API_KEY", "secret-of-the-daemon")
    (tmp_path / "key").write_text("k-1234\n")
    env = {"MODE": "fast", "KEY": {"file": str(tmp_path / "key")}}
    asked.configure(guard=program(cwd=str(tmp_path), env=env))
    shown = await asked.before(show=1)
    assert (shown["cwd"], shown["env"]["MODE"], shown["env"]["KEY"]) == (str(tmp_path), "fast", "k-1234")
    assert "GLM_API_KEY" not in shown["env"]
    assert (await asked.before(show=1))["pid"] == shown["pid"]
    with pytest.raises(PermissionDeniedError, match="refuses the call: no"):
        await asked.before(refuse=1)


async def test_answers_may_come_in_any_order(asked: Asked) -> None:
    """They are found by their ids; answers to other questions do no harm."""
    reverse = """
import json, sys
held = []
for line in sys.stdin:
    held.append(json.loads(line))
    if len(held) == 3:
        print(json.dumps({"id": 99}), flush=True)
        for question in reversed(held):
            print(json.dumps({"id": question["id"], "arguments": {"was": question["arguments"]["n"]}}), flush=True)
"""
    asked.configure(guard=program(reverse))
    answers = await asyncio.gather(*(asked.before(n=number) for number in range(3)))
    assert answers == [{"was": 0}, {"was": 1}, {"was": 2}]


async def test_a_program_that_floods_its_output_is_read_slowly(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line without an answer counts for the limit, so a flood does not take the daemon's time; answers do not."""
    counted: list[int] = []

    class Counted(ReadRate):
        def consume(self, number: int = 1) -> float:
            counted.append(number)
            return super().consume(number)

    monkeypatch.setattr(hook_program, "ReadRate", Counted)
    flooding = """
import sys
print("\\n" * 50 + "words\\n" * 50, flush=True)
for line in sys.stdin:
    print('{"id": 1}', flush=True)
"""
    asked.configure(guard=program(flooding))
    assert await asked.before(n=1) == {"n": 1}
    assert counted == [1] * 101


async def test_a_program_that_ends_is_started_again(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions that it got, and those until then, have no answer; operators learn how it ended."""
    monkeypatch.setattr(hook_program, "FIRST_RESTART_S", 0.01)
    asked.configure(guard=program())
    first = (await asked.before(show=1))["pid"]
    with pytest.raises(ServiceUnavailableError):
        await asked.before(die=1)
    assert asked.hooks.problems == ["hook guard: its program has ended (exit status 3)"]
    again: dict[str, Any] = {}

    async def answers() -> bool:
        try:
            again.update(await asked.before(show=1))
        except ServiceUnavailableError:
            return False
        return True

    while not await answers():
        await asyncio.sleep(0.01)
    assert again["pid"] != first
    assert asked.hooks.problems == []


async def test_a_program_that_hangs_is_ended(asked: Asked) -> None:
    """One that does not answer in time, and has answered nothing else meanwhile; another that leaves out an answer is
    left alone.
    """
    asked.configure(guard=program(timeout_s=1.0), patient=program(timeout_s=30))
    guard = asked.hooks._hooks["guard"]
    asked.configure(guard=program(timeout_s=1.0))
    assert asked.hooks._hooks["guard"] is guard, "unchanged settings do not restart a program"
    backend: Any = guard._backend
    await until(lambda: backend._process is not None)
    process = backend._process
    silent = asyncio.create_task(asked.before(silent=1))
    while not silent.done():
        await asked.before()
    with pytest.raises(ServiceUnavailableError):
        await silent
    assert process.returncode is None
    with pytest.raises(ServiceUnavailableError):
        await asked.before(hang=1)
    await until(lambda: process.returncode is not None)
    assert process.returncode == -9


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["/no/such/program"], "cannot be started: No such file"),
        ([sys.executable, "-c", "pass"], "exit status 0"),
        ([sys.executable, "-c", "import os, time; os.close(1); time.sleep(60)"], "closed its output"),
        ([sys.executable, "-c", "import sys; print('x' * 20_000_000); sys.stdin.read()"], "a line of more than 8 MiB"),
    ],
)
async def test_a_program_that_cannot_be_used(asked: Asked, command: list[str], problem: str) -> None:
    """The call is refused as configured, and operators learn the reason."""
    asked.configure(guard={"command": command, "timeout_s": 30})
    with pytest.raises(ServiceUnavailableError):
        await asked.before()
    assert problem in asked.hooks.problems[0]


async def test_a_missing_secret_is_a_problem(asked: Asked) -> None:
    """A program is not started without one."""
    asked.configure(guard=program(env={"KEY": {"env": "NO_SUCH_VARIABLE"}}))
    with pytest.raises(ServiceUnavailableError):
        await asked.before()
    assert "NO_SUCH_VARIABLE is not set" in asked.hooks.problems[0]


async def test_processes_of_a_program_end_with_it(asked: Asked) -> None:
    """Its whole group does, when its settings are removed."""
    child = "import subprocess, sys\nchild = subprocess.Popen(['sleep', '600'])\n"
    answering = """
import json
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "arguments": {"child": child.pid}}), flush=True)
"""
    asked.configure(guard=program(child + answering))
    pid = (await asked.before())["child"]
    asked.configure()

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
        except FileNotFoundError:
            return True

    assert os.getpgid(pid) != os.getpgid(0)
    await until(is_gone)
