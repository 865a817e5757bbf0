"""Loading of the sandbox's engine, and errors if it is missing."""

import asyncio
import builtins
import sys
from typing import Any

import pytest
from toold.sandbox import Sandbox, SandboxLimits, SandboxMissingError

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate that pydantic-monty is not installed."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "pydantic_monty" or name.startswith("toold.sandbox.sandbox_engine"):
            monkeypatch.delitem(sys.modules, name)
    importing = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "pydantic_monty":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return importing(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)


async def test_without_its_engine_the_sandbox_says_what_to_install(no_engine: None, run: Any) -> None:
    """Every run raises the same error."""
    for _ in range(2):
        with pytest.raises(SandboxMissingError, match=r"pip install '\.\[code\]'"):
            await run("return 1")


async def test_an_engine_start_failure_is_reported(monkeypatch: pytest.MonkeyPatch, make: Any, run_in: Any) -> None:
    """The error names the missing worker program; after the cause is removed, the next program runs."""
    run = run_in(make())
    monkeypatch.setenv("MONTY_BIN", "/nonexistent")
    with pytest.raises(SandboxMissingError, match=r"engine does not start: .*nonexistent"):
        await run("return 1")
    monkeypatch.delenv("MONTY_BIN")
    assert await run("return 1") == 1


async def test_the_engine_is_not_loaded_before_the_first_program() -> None:
    """A sandbox that ran no program can be closed."""
    sandbox = Sandbox(SandboxLimits(cpu_s=1.0, memory_bytes=1024**2, calls=1), programs=1)
    assert "not loaded" in repr(sandbox)
    await sandbox.close()


async def test_the_engine_is_loaded_once(make: Any, run_in: Any) -> None:
    """Two programs that start at the same time share one engine."""
    sandbox = make()
    run = run_in(sandbox)
    assert sum(await asyncio.gather(run("return 1"), run("return 2"))) == 3
    assert "open" in repr(sandbox)
