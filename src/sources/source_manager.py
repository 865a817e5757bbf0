"""The sources of a running daemon: started and stopped as the configuration says, their tools put together."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec
import structlog

from ..protocol.name_suggestions import close_names, did_you_mean
from ..tools import Tool
from .source import Quarantine, Source
from .source_notes import SourceNote
from .source_settings import SourceSettings

RESTART_S: Final = 5.0
"""A source that fails by a mistake of its own is started again after so long."""

_LOOK_AGAIN_S: Final = 0.1

OpenSource = Callable[[str, SourceSettings], Source]
State = Literal["loading", "ready", "failing"]

_log = structlog.get_logger(__name__)


class SourceState(msgspec.Struct, frozen=True):
    """A source, for the operator."""

    name: str
    type: str
    state: State
    """``failing``: something is wrong; tools that it had stay."""
    tools: int
    mended: int
    left_out: int
    quarantined: int
    """Tools that wait for ``toold sources approve``."""
    problem: str | None


class _ManagedSource:
    """One source at work, and what it has put out so far. Satisfies ``Outlet``."""

    def __init__(
        self,
        name: str,
        settings: SourceSettings,
        source: Source,
        on_change: Callable[["_ManagedSource"], None],
        on_recall: Callable[["_ManagedSource"], None],
    ) -> None:
        self.name = name
        self.settings = settings
        self.source = source
        self.tools: Sequence[Tool] = ()
        self.notes: Sequence[SourceNote] = ()
        self.problem: str | None = None
        self.loaded = False
        self._on_change = on_change
        self._on_recall = on_recall
        self.task = asyncio.create_task(self._keep(), name=f"source {name}")

    def put(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        self.tools, self.notes, self.problem, self.loaded = tuple(tools), tuple(notes), None, True
        left_out = sum(note.kind == "left out" for note in notes)
        _log.info("source ready", source=self.name, tools=len(tools), left_out=left_out)
        self._on_change(self)

    def recall(self, tools: Sequence[Tool]) -> None:
        self.tools = tuple(tools)
        self._on_recall(self)

    def complain(self, problem: str) -> None:
        if problem != self.problem:
            _log.warning("source fails", source=self.name, problem=problem)
        self.problem = problem

    def state(self) -> SourceState:
        kinds = [note.kind for note in self.notes]
        state: State = "failing" if self.problem else "ready" if self.loaded else "loading"
        held_back = kinds.count("quarantined")
        return SourceState(
            self.name,
            self.settings.type,
            state,
            sum(tool.withheld is None for tool in self.tools),
            kinds.count("mended"),
            kinds.count("left out"),
            held_back,
            self.problem,
        )

    async def _keep(self) -> None:
        while True:
            try:
                await self.source.run(self)
            except Exception as error:  # noqa: BLE001 - one source's mistake must not end the others
                _log.exception("a source ended by a mistake", source=self.name)
                self.complain(f"source {self.name}: it ended by a mistake of the daemon's ({type(error).__name__})")
            await asyncio.sleep(RESTART_S)


class SourceManager:
    """Has each configured source at work, and tells when the tools of all have changed. Never raises for a source."""

    def __init__(self, open_source: OpenSource, on_change: Callable[[], None]) -> None:
        self._open = open_source
        self._on_change = on_change
        self._held: dict[str, _ManagedSource] = {}
        # Sources of changed settings, until they have tools: those before serve so long.
        self._coming: dict[str, _ManagedSource] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<SourceManager of {', '.join(self._held) or 'nothing'}>"

    @property
    def tools(self) -> list[Tool]:
        """Of all sources, each name once: the source that is named first in the configuration has it."""
        tools: dict[str, Tool] = {}
        for held in self._held.values():
            for tool in held.tools:
                tools.setdefault(tool.name, tool)
        return list(tools.values())

    @property
    def problems(self) -> list[str]:
        """What is wrong now, a sentence a source."""
        everyone = [*self._held.values(), *self._coming.values()]
        return [held.problem for held in everyone if held.problem is not None]

    @property
    def states(self) -> list[SourceState]:
        """Each source, in the configuration's order. One of changed settings is told as what it is becoming."""
        return [self._coming.get(name, held).state() for name, held in self._held.items()]

    def go_by(self, configured: Mapping[str, SourceSettings]) -> None:
        """Start what is new, end what is gone, and put what has changed in the place of what it was, as soon as it has
        tools. Returns at once.
        """
        before = self._held
        gone = [held for name, held in before.items() if name not in configured]
        self._held = {}
        for name, settings in configured.items():
            held = before.get(name)
            latest = self._coming.get(name, held)
            if held is None or latest is None:
                self._held[name] = self._start(name, settings)
                continue
            self._held[name] = held
            if latest.settings != settings:
                self._drop_coming(name)
                if held.settings != settings:
                    self._coming[name] = self._start(name, settings)
        for held in gone:
            self._drop_coming(held.name)
            self._end(held)
        if any(held.tools for held in gone):
            self._on_change()

    def refresh(self) -> None:
        """Have every source look again."""
        for held in (*self._held.values(), *self._coming.values()):
            held.source.refresh()

    def approve(self, name: str, tool: str | None) -> Sequence[str]:
        """Have a source accept a tool that it holds back, or all of them; returns their names.

        Raises:
            LookupError: there is no such source, or it holds no such tool back.
            PinError: that cannot be kept.
        """
        source: object = self._held[name].source if name in self._held else None
        names = source.approve(tool) if isinstance(source, Quarantine) else ()
        if not names:
            raise LookupError(self._nothing_to_approve(name, tool))
        return names

    def _nothing_to_approve(self, name: str, tool: str | None) -> str:
        if name not in self._held:
            hint = did_you_mean(close_names(name, self._held, n=1)) or f"there are {', '.join(self._held) or 'none'}"
            return f"there is no source {name[:80]!r}; {hint}"
        source: object = self._held[name].source
        waiting = source.quarantined if isinstance(source, Quarantine) else ()
        what = "no tool" if tool is None else f"no tool {tool[:80]!r}"
        return f"the source {name} holds {what} back; " + (
            f"it holds {', '.join(waiting)}" if waiting else "it holds none"
        )

    async def loaded(self) -> None:
        """Return once each source has had its tools, or has failed."""
        while any(state.state == "loading" for state in self.states):  # noqa: ASYNC110 - an event would be one more state to keep right
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def close(self) -> None:
        """End them all."""
        for held in (*self._held.values(), *self._coming.values()):
            self._end(held)
        self._held, self._coming = {}, {}
        if self._closing:
            await asyncio.wait(self._closing)

    def _start(self, name: str, settings: SourceSettings) -> _ManagedSource:
        return _ManagedSource(name, settings, self._open(name, settings), self._changed, self._recalled)

    def _recalled(self, held: _ManagedSource) -> None:
        if self._held.get(held.name) is held:
            self._on_change()

    def _changed(self, held: _ManagedSource) -> None:
        if self._coming.get(held.name) is held:
            del self._coming[held.name]
            self._end(self._held[held.name])
            self._held[held.name] = held
        if self._held.get(held.name) is held:
            self._on_change()

    def _drop_coming(self, name: str) -> None:
        if name in self._coming:
            self._end(self._coming.pop(name))

    def _end(self, held: _ManagedSource) -> None:
        closing = asyncio.create_task(self._close(held), name=f"end of source {held.name}")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self, held: _ManagedSource) -> None:
        held.task.cancel()
        await asyncio.wait([held.task])
        await held.source.close()
