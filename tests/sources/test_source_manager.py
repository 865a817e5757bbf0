"""The source manager runs the configured sources and combines their tools."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.waiting import until
from toold.protocol.tool_call import Annotations
from toold.sources import QuarantinedVersion, SourceManager, SourceSettings, read_sources, source_manager
from toold.sources.source import SourceListener, SourceNote
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


class ScriptedSource:
    """A source that the test controls."""

    def __init__(self, name: str, spec: str) -> None:
        self.name = name
        self.spec = spec
        self.listener: SourceListener | None = None
        self.refreshed = 0
        self.runs = 0
        self.closed = False
        self.started = asyncio.Event()
        self.error: Exception | None = None

    async def run(self, listener: SourceListener) -> None:
        self.listener = listener
        self.runs += 1
        self.started.set()
        if self.error:
            error, self.error = self.error, None
            raise error
        await asyncio.Event().wait()

    def publish(self, *names: str, notes: Sequence[SourceNote] = ()) -> None:
        assert self.listener
        self.listener.publish([tool(name, self.name) for name in names], notes)

    def refresh(self) -> None:
        self.refreshed += 1

    async def close(self) -> None:
        self.closed = True


class Harness:
    """A manager, and every source that it opened."""

    def __init__(self) -> None:
        self.opened: list[ScriptedSource] = []
        self.changes = 0
        self.manager = SourceManager(self._open, self._changed)

    def _open(self, name: str, settings: SourceSettings) -> ScriptedSource:
        assert isinstance(settings, OpenApiSettings)
        self.opened.append(ScriptedSource(name, settings.spec))
        return self.opened[-1]

    def _changed(self) -> None:
        self.changes += 1

    async def apply(self, **sources: str) -> list[ScriptedSource]:
        """Applies these sources; returns those that the manager opened."""
        before = len(self.opened)
        self.manager.apply(settings(**sources))
        for source in self.opened[before:]:
            await source.started.wait()
        return self.opened[before:]

    @property
    def names(self) -> list[str]:
        return [tool.name for tool in self.manager.tools]


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    harness = Harness()
    yield harness
    await harness.manager.close()
    assert all(source.closed for source in harness.opened)


async def test_the_tools_of_all_sources_are_combined(harness: Harness) -> None:
    """States are in configured order."""
    crm, shop = await harness.apply(crm="/a", shop="/b")
    assert [state.state for state in harness.manager.states] == ["loading", "loading"]
    shop.publish("shop_x")
    crm.publish(
        "crm_a",
        "crm_b",
        notes=[SourceNote("repaired", "x", "y"), SourceNote("omitted", "x", "z"), SourceNote("omitted", "w", "z")],
    )
    assert harness.names == ["crm_a", "crm_b", "shop_x"]
    assert harness.changes == 2
    state = harness.manager.states[0]
    assert (state.name, state.type, state.state, state.tools) == ("crm", "openapi", "ready", 2)
    assert (state.repaired, state.omitted, state.problem) == (1, 2, None)


async def test_a_name_belongs_to_the_source_configured_first(harness: Harness) -> None:
    """Even if another source published it earlier."""
    crm, shop = await harness.apply(crm="/a", shop="/b")
    shop.publish("same")
    crm.publish("same")
    assert [tool.source for tool in harness.manager.tools] == ["crm"]


async def test_unchanged_sources_keep_running(harness: Harness) -> None:
    """New sources start, and removed ones end with their tools."""
    crm, shop = await harness.apply(crm="/a", shop="/b")
    crm.publish("crm_a")
    shop.publish("shop_a")
    (new,) = await harness.apply(new="/c", crm="/a")
    new.publish("new_a")
    assert harness.names == ["new_a", "crm_a"]
    await harness.manager.close()
    assert crm.closed


async def test_a_changed_source_serves_until_its_replacement_has_tools(harness: Harness) -> None:
    """A bad new document leaves the old source running, and its problem is reported."""
    (old,) = await harness.apply(crm="/a")
    old.publish("crm_old")
    (new,) = await harness.apply(crm="/b")
    assert new.listener
    new.listener.report_problem("crm: its document is bad")
    assert harness.names == ["crm_old"]
    assert harness.manager.problems == ["crm: its document is bad"]
    assert harness.manager.states[0].state == "failing"
    new.publish("crm_new")
    assert harness.names == ["crm_new"]
    assert harness.manager.problems == []
    await until(lambda: old.closed)
    old.publish("crm_late")
    assert harness.names == ["crm_new"]


async def test_a_reverted_change_keeps_the_first_source(harness: Harness) -> None:
    """The replacement ends."""
    (old,) = await harness.apply(crm="/a")
    old.publish("crm_old")
    (new,) = await harness.apply(crm="/b")
    assert await harness.apply(crm="/a") == []
    new.publish("crm_new")
    assert harness.names == ["crm_old"]
    await until(lambda: new.closed)


async def test_tools_stay_listed_while_a_source_fails(harness: Harness) -> None:
    """The state is ready again once tools are published."""
    (crm,) = await harness.apply(crm="/a")
    crm.publish("crm_a")
    assert crm.listener
    crm.listener.report_problem("crm: away")
    assert harness.names == ["crm_a"]
    assert [state.state for state in harness.manager.states] == ["failing"]
    crm.publish("crm_a", "crm_b")
    assert [state.state for state in harness.manager.states] == ["ready"]


async def test_a_source_that_raises_is_restarted(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its problem is reported, and other sources are unaffected."""
    monkeypatch.setattr(source_manager, "RESTART_S", 0.01)
    harness.manager.apply(settings(crm="/a", shop="/b"))
    crm, shop = harness.opened
    crm.error = RuntimeError("a bug")
    await shop.started.wait()
    await until(lambda: bool(harness.manager.problems))
    assert "RuntimeError" in harness.manager.problems[0]
    await until(lambda: crm.runs == 2)
    crm.publish("crm_a")
    assert harness.manager.problems == []


async def test_refresh_reaches_all_sources(harness: Harness) -> None:
    """Including replacements that are not ready yet."""
    (old,) = await harness.apply(crm="/a")
    (new,) = await harness.apply(crm="/b")
    harness.manager.refresh()
    assert (old.refreshed, new.refreshed) == (1, 1)


async def test_loaded_waits_only_for_loading_sources(harness: Harness) -> None:
    """It waits until each has tools or has failed, and returns at once if there are no sources."""
    await harness.manager.loaded()
    crm, billing = await harness.apply(crm="a", billing="b")
    loaded = asyncio.create_task(harness.manager.loaded())
    crm.publish("crm_get")
    await asyncio.sleep(0)
    assert not loaded.done()
    assert billing.listener
    billing.listener.report_problem("it is away")
    await loaded


class QuarantiningSource(ScriptedSource):
    """A source with quarantined tools."""

    quarantined: Sequence[str] = ("new", "other")

    @property
    def waiting(self) -> Sequence[QuarantinedVersion]:
        return [
            QuarantinedVersion("tool", name, "is new", f"+{name}", f"the hash of {name}", "")
            for name in self.quarantined
        ]

    async def approve(self, tool: str, digest: str) -> Sequence[str]:
        return [version.name for version in self.waiting if tool == version.name and version.digest.startswith(digest)]

    async def reload_pins(self, revisions: Mapping[str, int]) -> None:
        pass


async def test_a_quarantined_tool_is_approved_by_its_source() -> None:
    """By the version that the operator has seen; the error for another tool lists the quarantined ones."""
    manager = SourceManager(lambda name, _: QuarantiningSource(name, ""), lambda: None)
    manager.apply(settings(s="/a"))
    assert await manager.approve("s", "new", "the hash of new") == ["new"]
    assert await manager.approve("s", "new", "the hash of n") == ["new"]
    for unseen in ("", "the hash", "the hash of an earlier one"):
        with pytest.raises(LookupError, match=f"its version is the hash of , not '{unseen[:12]}'"):
            await manager.approve("s", "new", unseen)
    with pytest.raises(LookupError, match="source s has no quarantined tool 'nwe'; quarantined: new, other"):
        await manager.approve("s", "nwe", "the hash of new")
    with pytest.raises(LookupError, match="no source 'x'; configured: s"):
        await manager.approve("x", "new", "the hash of new")
    await manager.close()


async def test_a_source_without_a_quarantine_has_nothing_to_approve(harness: Harness) -> None:
    """Such as an OpenAPI source."""
    await harness.apply(crm="/a")
    with pytest.raises(LookupError, match="source crm has no quarantined tool 'x'; quarantined: none"):
        await harness.manager.approve("crm", "x", "the hash of x")


async def test_restored_tools_are_listed_before_their_source_is_ready(harness: Harness) -> None:
    """A pending replacement does not restore tools over those of the active source."""
    (crm,) = await harness.apply(crm="/a")
    assert crm.listener
    crm.listener.restore([tool("crm_a", "crm")])
    assert harness.names == ["crm_a"]
    assert harness.manager.states[0].state == "loading"
    crm.publish("crm_b")
    (later,) = await harness.apply(crm="/b")
    assert later.listener
    later.listener.restore([tool("crm_c", "crm")])
    assert harness.names == ["crm_b"]


async def test_a_missing_secret_is_a_problem_until_it_is_there(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the start, not from the first call; the tools are listed meanwhile. A file is read again."""
    monkeypatch.delenv("CRM_TOKEN", raising=False)
    table = {"type": "openapi", "spec": "/a", "auth": {"type": "bearer", "env": "CRM_TOKEN"}}
    late = {"type": "bearer", "file": str(tmp_path / "token")}
    with capture_logs() as logs:
        harness.manager.apply(read_sources({"crm": table, "late": table | {"auth": late}}))
        assert [state.state for state in harness.manager.states] == ["loading", "loading"]
        for source in harness.opened:
            await source.started.wait()
    for source in harness.opened:
        source.publish(f"{source.name}_a")
    assert [(state.state, state.tools) for state in harness.manager.states] == [("failing", 1), ("failing", 1)]
    unset = "source crm: the variable CRM_TOKEN is not set in the daemon's environment; calls that need it fail"
    assert harness.manager.problems[0] == unset
    assert unset in [entry.get("problem") for entry in logs]
    (tmp_path / "token").write_text("hunter2\n")
    assert harness.manager.problems == [unset]
    assert harness.manager.states[1].state == "ready"
