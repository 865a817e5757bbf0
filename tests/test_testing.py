"""``toold.testing``, and what it shows of a tool that asks a model: the pages of the docs run as they stand."""

import asyncio
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from structlog.testing import capture_logs
from toold.protocol.error_codes import InvalidArgumentsError, RateLimitedError, ToolExecutionError
from toold.providers import JsonFormat
from toold.testing import daemon_under_test
from toold.tools import Arguments, ToolContext, tool

DOCS = Path(__file__).parents[1] / "docs"

AUTHORS_TOOL = """\
import json

from toold.tools import Arguments, ToolContext, tool


def parse(text: str) -> object:
    return json.loads(text)  # line 7


@tool("acme_broken", read_only=True, open_world=False)
async def broken(arguments: Arguments, context: ToolContext) -> object:
    \"\"\"Fails in a library.\"\"\"
    return parse("{ a patient's name")
"""


def program(page: str) -> str:
    """The first program of a page."""
    shown = re.search(r"```python\n(.+?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    assert shown is not None
    return shown[1]


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], ModuleType]]:
    """A function that writes a module of an author's package, and imports it."""
    package = tmp_path / "code" / "acme_tools"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(package.parent))

    def module(name: str, text: str) -> ModuleType:
        (package / f"{name}.py").write_text(text)
        invalidate_caches()
        return import_module(f"acme_tools.{name}")

    yield module
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_tools"]:
        del sys.modules[name]


async def test_the_pages_for_authors_of_tools_run_as_they_stand(
    acme: Callable[[str, str], ModuleType], tmp_path: Path
) -> None:
    """The tests of docs/testing-a-tool.md pass with the tool of docs/a-tool-that-asks-a-model.md."""
    acme("review", program("a-tool-that-asks-a-model.md"))
    tests = acme("test_review", program("testing-a-tool.md"))
    names = [name for name, value in vars(tests).items() if inspect.iscoroutinefunction(value)]
    assert len(names) == 2
    for name in names:
        workspace = tmp_path / name
        workspace.mkdir()
        test: Callable[[Path], Awaitable[None]] = getattr(tests, name)
        await test(workspace)


@tool("acme_ask", read_only=True, open_world=True, timeout_s=300)
async def asks(_arguments: Arguments, context: ToolContext) -> Any:
    """Asks one model twice at the same time, then another."""
    glm = next(model.id for model in context.daemon.catalog.models if model.provider == "glm")
    await asyncio.gather(context.ask("first"), context.ask("second"))
    answer = await context.ask(
        "third", model=glm, system="Be brief.", response_format=JsonFormat({"type": "object"}), max_tokens=77
    )
    return answer.data()


async def test_questions_belong_to_the_call_that_asks() -> None:
    """All are metered with it, each option reaches the vendor, and nothing is streamed unless the tool says so."""
    chunks: list[str] = []
    async with daemon_under_test(asks) as daemon:
        result = await daemon.client.call("acme_ask", on_chunk=chunks.append)
        bodies = [request.body for request in daemon.simulator.log]
    assert result.metadata.provider_calls == 3
    assert [usage.completions for usage in result.metadata.usage_by_model] == [2, 1]
    assert result.metadata.simulated
    assert result.structured["provider"] == "glm"
    assert "Be brief." in bodies[2]["messages"][0]["content"]
    assert bodies[2]["max_tokens"] == 77
    assert chunks == []


class Named(Arguments):
    model: str | None = None


@tool("acme_stream", read_only=True, open_world=True)
async def streams(arguments: Named, context: ToolContext) -> str:
    """Streams a model's answer."""
    return (await context.ask("say something", model=arguments.model, stream=True)).text


async def test_a_question_passes_on_the_errors_and_the_stream_of_its_model() -> None:
    """An unknown model is never replaced, and a vendor's refusal reaches the caller with its code."""
    chunks: list[str] = []
    async with daemon_under_test(streams) as daemon:
        result = await daemon.client.call("acme_stream", on_chunk=chunks.append)
        assert "".join(chunks) == result.text
        with pytest.raises(InvalidArgumentsError, match="no-such-model"):
            await daemon.client.call("acme_stream", {"model": "no-such-model"})
        for _ in range(9):  # more than the attempts of one call
            daemon.simulator.plan("glm", "chat", "status=429 retry_after=3600")
        with pytest.raises(RateLimitedError):
            await daemon.client.call("acme_stream")


async def test_the_log_names_the_authors_line(acme: Callable[[str, str], ModuleType]) -> None:
    """Not the library's line that raised; the traceback has both, without the text of the exception."""
    module = acme("broken", AUTHORS_TOOL)
    with capture_logs() as lines:
        async with daemon_under_test(module.broken) as daemon:
            with pytest.raises(ToolExecutionError, match="failed with JSONDecodeError"):
                await daemon.client.call("acme_broken")
    (line,) = [line for line in lines if line["event"] == "tool failed"]
    assert line["at"] == f"{module.__file__}:7"
    assert line["error"] == "JSONDecodeError"
    assert isinstance(line["exc_info"], ValueError)


async def test_a_taken_name_is_an_error() -> None:
    """A daemon would skip the tool, and the test would test another."""

    @tool("echo", read_only=True, open_world=False)
    async def impostor(_arguments: Arguments, _context: ToolContext) -> str:
        """Not the echo that is there."""
        return ""

    with pytest.raises(ValueError, match="the name 'echo' is taken"):
        async with daemon_under_test(impostor):
            pass


async def test_nothing_of_the_caller_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the environment nor the working directory's ``toold.toml`` changes the daemon."""
    (tmp_path / "toold.toml").write_text("max_running = 1\nno_such_setting = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLD_MAX_RUNNING", "many")
    async with daemon_under_test(env={"TOOLD_MAX_RUNNING": "7"}) as daemon:
        status = (await daemon.client.call("status")).structured
    assert status["limits"]["running"]["limit"] == 7
