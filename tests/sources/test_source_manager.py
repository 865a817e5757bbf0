"""The keeper has at work what is configured, and puts the tools of all together."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.waiting import until
from toold.protocol.tool_call import Annotations
from toold.sources import SourceManager, SourceSettings, read_sources, source_manager
from toold.sources.source import SourceOutlet
from toold.sources.source_notes import SourceNote
from toold.sources.source_settings import OpenApiSettings
from toold.tools import JsonSchema, Tool, ToolContext


async def nothing(_: dict[str, Any], __: ToolContext) -> None:
    return None


def tool(name: str, source: str = "s") -> Tool:
    hints = Annotations(True, False, True, True)
    return Tool(name, "A tool.", JsonSchema({"type": "object"}), nothing, hints, source=source)


def settings(**sources: str) -> dict[str, SourceSettings]:
    """Sources by name, each with this document."""
    return read_sources({name: {"type": "openapi", "spec": spec} for name, spec in sources.items()})


class Scripted:
    """A source that does as its test says."""

    def __init__(self, name: str, spec: str) -> None:
        self.name = name
        self.spec = spec
        self.outlet: SourceOutlet | None = None
        self.refreshed = 0
        self.runs = 0
        self.closed = False
        self.begun = asyncio.Event()
        self.error: Exception | None = None

    async def run(self, outlet: SourceOutlet) -> None:
        self.outlet = outlet
        self.runs += 1
        self.begun.set()
        if self.error:
            error, self.error = self.error, None
            raise error
        await asyncio.Event().wait()

    def put(self, *names: str, notes: Sequence[SourceNote] = ()) -> None:
        assert self.outlet
        self.outlet.put([tool(name, self.name) for name in names], notes)

    def refresh(self) -> None:
        self.refreshed += 1

    async def close(self) -> None:
        self.closed = True


class House:
    """A keeper, and every source that it opened."""

    def __init__(self) -> None:
        self.opened: list[Scripted] = []
        self.changes = 0
        self.keeper = SourceManager(self._open, self._changed)

    def _open(self, name: str, settings: SourceSettings) -> Scripted:
        assert isinstance(settings, OpenApiSettings)
        self.opened.append(Scripted(name, settings.spec))
        return self.opened[-1]

    def _changed(self) -> None:
        self.changes += 1

    async def go_by(self, **sources: str) -> list[Scripted]:
        """Configure these; returns those that were opened for it."""
        before = len(self.opened)
        self.keeper.go_by(settings(**sources))
        for source in self.opened[before:]:
            await source.begun.wait()
        return self.opened[before:]

    @property
    def names(self) -> list[str]:
        return [tool.name for tool in self.keeper.tools]


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    yield house
    await house.keeper.close()
    assert all(source.closed for source in house.opened)


async def test_tools_of_all_sources_stand_together(house: House) -> None:
    """Each source is told in its state, in the configuration's order."""
    crm, shop = await house.go_by(crm="/a", shop="/b")
    assert [state.state for state in house.keeper.states] == ["loading", "loading"]
    shop.put("shop_x")
    crm.put(
        "crm_a",
        "crm_b",
        notes=[SourceNote("mended", "x", "y"), SourceNote("left out", "x", "z"), SourceNote("left out", "w", "z")],
    )
    assert house.names == ["crm_a", "crm_b", "shop_x"]
    assert house.changes == 2
    state = house.keeper.states[0]
    assert (state.name, state.type, state.state, state.tools) == ("crm", "openapi", "ready", 2)
    assert (state.mended, state.left_out, state.problem) == (1, 2, None)


async def test_a_name_belongs_to_the_source_that_stands_first(house: House) -> None:
    """Whoever was there sooner."""
    crm, shop = await house.go_by(crm="/a", shop="/b")
    shop.put("same")
    crm.put("same")
    assert [tool.source for tool in house.keeper.tools] == ["crm"]


async def test_what_stays_is_not_touched(house: House) -> None:
    """New sources begin, gone ones end with their tools, and the others go on."""
    crm, shop = await house.go_by(crm="/a", shop="/b")
    crm.put("crm_a")
    shop.put("shop_a")
    (new,) = await house.go_by(new="/c", crm="/a")
    new.put("new_a")
    assert house.names == ["new_a", "crm_a"]
    await house.keeper.close()
    assert crm.closed


async def test_what_has_changed_serves_until_the_new_one_has_tools(house: House) -> None:
    """No moment is without tools; a new document that is bad leaves the old one at work, and its problem is told."""
    (old,) = await house.go_by(crm="/a")
    old.put("crm_old")
    (new,) = await house.go_by(crm="/b")
    assert new.outlet
    new.outlet.complain("crm: its document is bad")
    assert house.names == ["crm_old"]
    assert house.keeper.problems == ["crm: its document is bad"]
    assert house.keeper.states[0].state == "failing"
    new.put("crm_new")
    assert house.names == ["crm_new"]
    assert house.keeper.problems == []
    await until(lambda: old.closed)
    old.put("crm_late")
    assert house.names == ["crm_new"]


async def test_a_change_that_is_taken_back_leaves_all_as_it_was(house: House) -> None:
    """What was coming ends, and the first one goes on."""
    (old,) = await house.go_by(crm="/a")
    old.put("crm_old")
    (new,) = await house.go_by(crm="/b")
    assert await house.go_by(crm="/a") == []
    new.put("crm_new")
    assert house.names == ["crm_old"]
    await until(lambda: new.closed)


async def test_tools_stay_while_something_is_wrong(house: House) -> None:
    """Until it is right again."""
    (crm,) = await house.go_by(crm="/a")
    crm.put("crm_a")
    assert crm.outlet
    crm.outlet.complain("crm: away")
    assert house.names == ["crm_a"]
    assert [state.state for state in house.keeper.states] == ["failing"]
    crm.put("crm_a", "crm_b")
    assert [state.state for state in house.keeper.states] == ["ready"]


async def test_a_source_that_ends_by_a_mistake_is_started_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its problem is told, and the others do not notice."""
    monkeypatch.setattr(source_manager, "RESTART_S", 0.01)
    house.keeper.go_by(settings(crm="/a", shop="/b"))
    crm, shop = house.opened
    crm.error = RuntimeError("a mistake")
    await shop.begun.wait()
    await until(lambda: bool(house.keeper.problems))
    assert "RuntimeError" in house.keeper.problems[0]
    await until(lambda: crm.runs == 2)
    crm.put("crm_a")
    assert house.keeper.problems == []


async def test_all_look_again_when_the_operator_asks(house: House) -> None:
    """Those that are coming too."""
    (old,) = await house.go_by(crm="/a")
    (new,) = await house.go_by(crm="/b")
    house.keeper.refresh()
    assert (old.refreshed, new.refreshed) == (1, 1)


async def test_who_waits_for_the_sources_waits_for_those_that_load_alone(house: House) -> None:
    """Until each has had its tools, or has failed; and not at all where there is none."""
    await house.keeper.loaded()
    crm, billing = await house.go_by(crm="a", billing="b")
    loaded = asyncio.create_task(house.keeper.loaded())
    crm.put("crm_get")
    await asyncio.sleep(0)
    assert not loaded.done()
    assert billing.outlet
    billing.outlet.complain("it is away")
    await loaded


class Holding(Scripted):
    """A source that holds tools back."""

    quarantined: Sequence[str] = ("new", "other")

    def approve(self, tool: str | None) -> Sequence[str]:
        return [name for name in self.quarantined if tool in {None, name}]


async def test_a_held_back_tool_is_approved_by_its_source() -> None:
    """What is not held back is told, with what is."""
    keeping = SourceManager(lambda name, _: Holding(name, ""), lambda: None)
    keeping.go_by(settings(s="/a"))
    assert keeping.approve("s", None) == ["new", "other"]
    assert keeping.approve("s", "new") == ["new"]
    with pytest.raises(LookupError, match="the source s holds no tool 'nwe' back; it holds new, other"):
        keeping.approve("s", "nwe")
    with pytest.raises(LookupError, match="there is no source 'x'; there are s"):
        keeping.approve("x", None)
    await keeping.close()


async def test_a_source_without_a_quarantine_holds_nothing_back(house: House) -> None:
    """Such as an API."""
    await house.go_by(crm="/a")
    with pytest.raises(LookupError, match="the source crm holds no tool back; it holds none"):
        house.keeper.approve("crm", None)


async def test_recalled_tools_are_there_before_their_source(house: House) -> None:
    """It still loads; and where another serves in its place, that goes on."""
    (crm,) = await house.go_by(crm="/a")
    assert crm.outlet
    crm.outlet.recall([tool("crm_a", "crm")])
    assert house.names == ["crm_a"]
    assert house.keeper.states[0].state == "loading"
    crm.put("crm_b")
    (later,) = await house.go_by(crm="/b")
    assert later.outlet
    later.outlet.recall([tool("crm_c", "crm")])
    assert house.names == ["crm_b"]
