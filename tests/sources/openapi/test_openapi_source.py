"""A REST API as a source: its tools, and what happens when its document changes."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response
from toold.sources import Source, check_source, open_source, read_sources
from toold.sources.openapi import openapi_source as module
from toold.sources.pin_storage import PinFiles
from toold.sources.source import SourceNote
from toold.tools import Tool, ToolOutput, bind


def document(*ids: str, **paths: Any) -> str:
    made = {f"/{one}": {"get": {"operationId": one}} for one in ids}
    return json.dumps({"openapi": "3.0.0", "info": {"title": "CRM"}, "paths": made | paths})


class FakeListener:
    """Records what a source publishes."""

    def __init__(self) -> None:
        self.tools: Sequence[Tool] = ()
        self.notes: Sequence[SourceNote] = ()
        self.problems: list[str] = []
        self.puts = 0
        self._something = asyncio.Event()

    def publish(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        self.tools, self.notes = tools, notes
        self.puts += 1
        self._something.set()

    def restore(self, tools: Sequence[Tool]) -> None:
        raise AssertionError("a document is read anew")

    def report_problem(self, problem: str) -> None:
        self.problems.append(problem)
        self._something.set()

    async def next(self) -> None:
        async with asyncio.timeout(30):
            await self._something.wait()
        self._something.clear()

    @property
    def names(self) -> list[str]:
        return [tool.name for tool in self.tools]


def opened(table: dict[str, Any]) -> Source:
    return open_source("crm", read_sources({"crm": table})["crm"], pins=PinFiles(Path()), taken=lambda _: ())


@pytest.fixture
async def listener(api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeListener]:
    """A listener of the running source ``crm``, from ``crm.json``."""
    monkeypatch.setattr(module, "FILE_POLL_S", 0.02)
    monkeypatch.setattr(module, "_FIRST_RETRY_S", 0.02)
    table = {"type": "openapi", "spec": str(tmp_path / "crm.json"), "base_url": api.url, "allow_private": True}
    source, listener = opened(table), FakeListener()
    running = asyncio.create_task(source.run(listener))
    yield listener
    running.cancel()
    await asyncio.wait([running])
    await source.close()


async def test_each_operation_becomes_a_tool(listener: FakeListener, api: Any, tmp_path: Path, context: Any) -> None:
    """With its arguments and annotations; the document may appear after the source has started."""
    await listener.next()
    assert "crm.json does not exist" in listener.problems[0]
    methods = {method: {"operationId": f"{method}It"} for method in ("get", "put", "post", "delete", "patch")}
    (tmp_path / "crm.json").write_text(document(**{"/it": methods, "/bad": {"get": 5}}), encoding="utf-8")
    while not listener.tools:
        await listener.next()
    hints = {tool.name: tool.annotations for tool in listener.tools}
    assert [name for name, hint in hints.items() if hint.read_only_hint] == ["crm_getIt"]
    assert [name for name, hint in hints.items() if hint.destructive_hint] == ["crm_deleteIt"]
    assert [name for name, hint in hints.items() if hint.idempotent_hint] == [
        "crm_getIt",
        "crm_putIt",
        "crm_deleteIt",
    ]
    assert all(hint.open_world_hint for hint in hints.values())
    assert [str(note) for note in listener.notes] == ["GET /bad: it is not an object"]
    tool = listener.tools[0]
    assert (tool.source, tool.timeout_s) == ("crm", 30)
    assert await tool.run(bind(tool, {}), context) == ToolOutput(data={"ok": True})
    assert api.asked[0].target == "/it"


async def test_changes_of_the_document_are_applied(listener: FakeListener, tmp_path: Path) -> None:
    """A bad document is reported, and the previous tools stay."""
    file = tmp_path / "crm.json"
    file.write_text(document("a"), encoding="utf-8")
    while listener.names != ["crm_a"]:
        await listener.next()
    reported = len(listener.problems)
    file.write_text("{", encoding="utf-8")
    while len(listener.problems) == reported:
        await listener.next()
    assert listener.names == ["crm_a"]
    new = tmp_path / "new.json"
    new.write_text(document("a", "b"), encoding="utf-8")
    new.replace(file)
    while listener.names != ["crm_a", "crm_b"]:
        await listener.next()


async def test_a_url_is_loaded_again_on_refresh(api: Any) -> None:
    """And not before. While the document stays the same, so do its tools."""
    api.answers = [Response(document("a")), Response(document("a")), Response(document("a", "b"))]
    table = {"type": "openapi", "spec": f"{api.url}/api.json", "allow_private": True}
    source, listener = opened(table), FakeListener()
    running = asyncio.create_task(source.run(listener))
    await listener.next()
    assert listener.names == ["crm_a"]
    before = listener.tools[0]
    source.refresh()
    await listener.next()
    assert listener.tools[0] is before
    source.refresh()
    await listener.next()
    assert listener.names == ["crm_a", "crm_b"]
    assert listener.puts == 3
    running.cancel()
    await asyncio.wait([running])
    await source.close()


async def test_a_check_only_loads_the_document(api: Any) -> None:
    """It returns the tools, or why the source cannot be used."""
    api.answers = [JSONResponse(json.loads(document("a", **{"/bad": {"head": {}}}))), Response(status_code=500)]
    settings = read_sources({"crm": {"type": "openapi", "spec": f"{api.url}/api.json", "allow_private": True}})["crm"]
    checked = await check_source("crm", settings, pins=PinFiles(Path()))
    assert (checked.title, checked.tools, checked.problem) == ("CRM", ("crm_a",), None)
    assert [note.kind for note in checked.notes] == ["omitted"]
    assert (await check_source("crm", settings, pins=PinFiles(Path()))).problem == "127.0.0.1 answered HTTP 500"
    assert len(api.asked) == 2
