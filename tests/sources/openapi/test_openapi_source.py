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
from toold.sources.source import SourceNote
from toold.tools import Answer, Tool, bind


def document(*ids: str, **paths: Any) -> str:
    made = {f"/{one}": {"get": {"operationId": one}} for one in ids}
    return json.dumps({"openapi": "3.0.0", "info": {"title": "CRM"}, "paths": made | paths})


class FakeListener:
    """What a source puts out."""

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
    return open_source("crm", read_sources({"crm": table})["crm"], pins=Path(), taken=lambda _: ())


@pytest.fixture
async def shelf(api: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeListener]:
    """The source ``crm`` at work, of ``crm.json``."""
    monkeypatch.setattr(module, "LIST_INTERVAL_S", 0.02)
    monkeypatch.setattr(module, "_FIRST_RETRY_S", 0.02)
    table = {"type": "openapi", "spec": str(tmp_path / "crm.json"), "base_url": api.url, "allow_private": True}
    source, shelf = opened(table), FakeListener()
    running = asyncio.create_task(source.run(shelf))
    yield shelf
    running.cancel()
    await asyncio.wait([running])
    await source.close()


async def test_each_operation_is_a_tool(shelf: FakeListener, api: Any, tmp_path: Path, context: Any) -> None:
    """With its arguments, its hints by its method, and its answer; the document may come later than the source."""
    await shelf.next()
    assert "crm.json is not there" in shelf.problems[0]
    methods = {method: {"operationId": f"{method}It"} for method in ("get", "put", "post", "delete", "patch")}
    (tmp_path / "crm.json").write_text(document(**{"/it": methods, "/bad": {"get": 5}}), encoding="utf-8")
    while not shelf.tools:
        await shelf.next()
    hints = {tool.name: tool.annotations for tool in shelf.tools}
    assert [name for name, said in hints.items() if said.read_only_hint] == ["crm_getIt"]
    assert [name for name, said in hints.items() if said.destructive_hint] == ["crm_deleteIt"]
    assert [name for name, said in hints.items() if said.idempotent_hint] == ["crm_getIt", "crm_putIt", "crm_deleteIt"]
    assert all(said.open_world_hint for said in hints.values())
    assert [str(note) for note in shelf.notes] == ["GET /bad: it is no object"]
    tool = shelf.tools[0]
    assert (tool.source, tool.timeout_s) == ("crm", 30)
    assert await tool.run(bind(tool, {}), context) == Answer(data={"ok": True})
    assert api.asked[0].target == "/it"


async def test_a_document_is_followed(shelf: FakeListener, tmp_path: Path) -> None:
    """A change takes effect by itself; what cannot be used is told, and the tools from before stay."""
    file = tmp_path / "crm.json"
    file.write_text(document("a"), encoding="utf-8")
    while shelf.names != ["crm_a"]:
        await shelf.next()
    told = len(shelf.problems)
    file.write_text("{", encoding="utf-8")
    while len(shelf.problems) == told:
        await shelf.next()
    assert shelf.names == ["crm_a"]
    new = tmp_path / "new.json"
    new.write_text(document("a", "b"), encoding="utf-8")
    new.replace(file)
    while shelf.names != ["crm_a", "crm_b"]:
        await shelf.next()


async def test_an_address_is_asked_again_when_the_operator_says(api: Any) -> None:
    """And not before."""
    api.answers = [Response(document("a")), Response(document("a", "b"))]
    table = {"type": "openapi", "spec": f"{api.url}/api.json", "allow_private": True}
    source, shelf = opened(table), FakeListener()
    running = asyncio.create_task(source.run(shelf))
    await shelf.next()
    assert shelf.names == ["crm_a"]
    source.refresh()
    await shelf.next()
    assert shelf.names == ["crm_a", "crm_b"]
    assert shelf.puts == 2
    running.cancel()
    await asyncio.wait([running])
    await source.close()


async def test_a_check_asks_for_the_document_alone(api: Any) -> None:
    """What it comes to, or why it cannot be used."""
    api.answers = [JSONResponse(json.loads(document("a", **{"/bad": {"head": {}}}))), Response(status_code=500)]
    settings = read_sources({"crm": {"type": "openapi", "spec": f"{api.url}/api.json", "allow_private": True}})["crm"]
    checked = await check_source("crm", settings, pins=Path())
    assert (checked.title, checked.tools, checked.problem) == ("CRM", ("crm_a",), None)
    assert [note.kind for note in checked.notes] == ["omitted"]
    assert (await check_source("crm", settings, pins=Path())).problem == "127.0.0.1 answered HTTP 500"
    assert len(api.asked) == 2
