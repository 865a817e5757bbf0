"""The sources of a running daemon: starts and stops them according to the settings, and combines their tools."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec
import structlog

from ..protocol.name_suggestions import close_names, did_you_mean
from ..tools import Tool
from .cached_tools import with_cache
from .source import InstructsModels, LooksAgain, Quarantine, QuarantinedVersion, Source, SourceNote
from .source_content import ContentSource, OffersContent
from .source_secrets import unavailable_secrets
from .source_settings import CachedSettings, SourceSettings
from .tool_pins import PinConflictError, PinError
from .upstream_definition import VERSION_CHARS

RESTART_S: Final = 5.0
"""Delay before a source that raised an unexpected exception is restarted."""

_POLL_S: Final = 0.1

OpenSource = Callable[[str, SourceSettings], Source]
State = Literal["loading", "ready", "failing"]

_log = structlog.get_logger(__name__)


class SourceState(msgspec.Struct, frozen=True):
    """The state of one source, for the operator."""

    name: str
    type: str
    state: State
    """``failing``: the source has a problem; its earlier tools stay listed."""
    tools: int
    repaired: int
    omitted: int
    quarantined: int
    """Tools that wait for ``toold sources approve``."""
    problem: str | None


class _ManagedSource:
    """A running source, with its latest tools and notes. Implements ``SourceListener``."""

    def __init__(
        self,
        name: str,
        settings: SourceSettings,
        source: Source,
        on_change: Callable[["_ManagedSource"], None],
        on_restore: Callable[["_ManagedSource"], None],
        on_quarantine: Callable[[], None],
    ) -> None:
        self.name = name
        self.settings = settings
        self.source = source
        self.tools: Sequence[Tool] = ()
        self.notes: Sequence[SourceNote] = ()
        self.problem: str | None = None
        self.loaded = False
        self._on_change = on_change
        self._on_restore = on_restore
        self._on_quarantine = on_quarantine
        self.task = asyncio.create_task(self._run(), name=f"source {name}")

    def publish(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        quarantined = _quarantined_in(notes) - _quarantined_in(self.notes)
        self.tools, self.notes, self.problem, self.loaded = self._cached(tools), tuple(notes), None, True
        omitted = sum(note.kind == "omitted" for note in notes)
        _log.info("source ready", source=self.name, tools=len(tools), omitted=omitted)
        self._on_change(self)
        if quarantined:
            self._on_quarantine()

    def restore(self, tools: Sequence[Tool]) -> None:
        self.tools = self._cached(tools)
        self._on_restore(self)

    def report_problem(self, problem: str) -> None:
        if problem != self.problem:
            _log.warning("source fails", source=self.name, problem=problem)
        self.problem = problem

    def _cached(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return with_cache(tools, self.settings.cache_s if isinstance(self.settings, CachedSettings) else ())

    @property
    def current_problem(self) -> str | None:
        """The problem of the source or of its secrets, which are read again for this."""
        if self.problem is not None:
            return self.problem
        missing = unavailable_secrets(self.settings.secrets)
        return f"source {self.name}: {'; '.join(missing)}; calls that need it fail" if missing else None

    def state(self) -> SourceState:
        kinds = [note.kind for note in self.notes]
        problem = self.current_problem
        state: State = "failing" if problem else "ready"
        if self.problem is None and not self.loaded:
            state = "loading"
        return SourceState(
            self.name,
            self.settings.type,
            state,
            sum(tool.withheld is None for tool in self.tools),
            kinds.count("repaired"),
            kinds.count("omitted"),
            kinds.count("quarantined"),
            problem,
        )

    async def _run(self) -> None:
        if self.current_problem is not None:
            _log.warning("source fails", source=self.name, problem=self.current_problem)
        while True:
            try:
                await self.source.run(self)
            except Exception as error:  # noqa: BLE001 - a bug in one source must not end the others
                _log.exception("source failed unexpectedly", source=self.name)
                self.report_problem(f"source {self.name}: internal error ({type(error).__name__})")
            await asyncio.sleep(RESTART_S)


def _quarantined_in(notes: Sequence[SourceNote]) -> set[str]:
    return {note.where for note in notes if note.kind == "quarantined"}


class SourceManager:
    """Runs the configured sources, and calls ``on_change`` when the tools change. Failures of sources do not raise."""

    on_quarantine: Callable[[str], None] = staticmethod(lambda _: None)
    """Called with the name of a source whose listing has newly quarantined tools."""

    def __init__(self, open_source: OpenSource, on_change: Callable[[], None]) -> None:
        self._open = open_source
        self._on_change = on_change
        self._active: dict[str, _ManagedSource] = {}
        # Sources with changed settings that have no tools yet. Until they do, the previous sources stay active.
        self._pending: dict[str, _ManagedSource] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<SourceManager of {', '.join(self._active) or 'nothing'}>"

    @property
    def tools(self) -> list[Tool]:
        """The tools of all sources. If two tools have the same name, the source that is configured first wins."""
        tools: dict[str, Tool] = {}
        for managed in self._active.values():
            for tool in managed.tools:
                tools.setdefault(tool.name, tool)
        return list(tools.values())

    @property
    def offering(self) -> dict[str, ContentSource]:
        """The resources and prompts of the sources that support them, in configured order."""
        active = {name: managed.source for name, managed in self._active.items()}
        return {name: source.offered for name, source in active.items() if isinstance(source, OffersContent)}

    @property
    def instructions(self) -> dict[str, str]:
        """The instructions of the sources for models, in configured order."""
        texts = {}
        for name, managed in self._active.items():
            source: object = managed.source
            if isinstance(source, InstructsModels) and (text := source.instructions):
                texts[name] = text
        return texts

    @property
    def problems(self) -> list[str]:
        """The current problems, one sentence per source."""
        sources = [*self._active.values(), *self._pending.values()]
        return [problem for source in sources if (problem := source.current_problem) is not None]

    @property
    def states(self) -> list[SourceState]:
        """The state of each source, in configured order; after a change of settings, the new source's state."""
        return [self._pending.get(name, managed).state() for name, managed in self._active.items()]

    def apply(self, configured: Mapping[str, SourceSettings]) -> None:
        """Starts new sources and ends removed ones. A changed source replaces the old one once it has tools.

        Returns at once.
        """
        before = self._active
        removed = [managed for name, managed in before.items() if name not in configured]
        self._active = {}
        for name, settings in configured.items():
            managed = before.get(name)
            latest = self._pending.get(name, managed)
            if managed is None or latest is None:
                self._active[name] = self._start(name, settings)
                continue
            self._active[name] = managed
            if latest.settings != settings:
                self._drop_pending(name)
                if managed.settings != settings:
                    self._pending[name] = self._start(name, settings)
        for managed in removed:
            self._drop_pending(managed.name)
            self._end(managed)
        if any(managed.tools for managed in removed):
            self._on_change()

    def refresh_one(self, name: str) -> None:
        """Asks a source to read its tools again.

        Raises:
            LookupError: there is no such source.
        """
        self._pending.get(name, self._active[name]).source.refresh()

    def settings_of(self, name: str) -> SourceSettings | None:
        """The latest settings of a source; None if there is no such source."""
        managed = self._pending.get(name, self._active.get(name))
        return None if managed is None else managed.settings

    def notes_of(self, name: str) -> Sequence[SourceNote]:
        """Notes about repaired, omitted and quarantined entries in a source's latest listing."""
        return self._active[name].notes if name in self._active else ()

    def refresh(self) -> None:
        """Asks every source to read its tools again."""
        for managed in (*self._active.values(), *self._pending.values()):
            managed.source.refresh()

    def look_again(self) -> None:
        """Called when a client lists tools: reads sources that may have changed without notification again soon."""
        for managed in self._active.values():
            source: object = managed.source
            if isinstance(source, LooksAgain):
                source.look_again()

    def waiting(self, name: str) -> Sequence[QuarantinedVersion]:
        """The versions of a source's tools, prompts and instructions that wait for approval."""
        source: object = self._active[name].source if name in self._active else None
        return source.waiting if isinstance(source, Quarantine) else ()

    def unknown(self, name: str) -> str | None:
        """A message that no source has this name; None if a source has it."""
        if name in self._active:
            return None
        hint = did_you_mean(close_names(name, self._active, n=1)) or f"configured: {', '.join(self._active) or 'none'}"
        return f"no source {name[:80]!r}; {hint}"

    async def approve(self, name: str, tool: str, digest: str) -> Sequence[str]:
        """Approves a quarantined tool of a source in the version whose hash begins with ``digest`` (``VERSION_CHARS``
        or more), which the operator has seen. Returns the tool's name.

        Raises:
            LookupError: the source does not exist, or has no such quarantined tool or version, or another version was
                approved meanwhile.
            PinError: the pins cannot be written.
        """
        source: object = self._active[name].source if name in self._active else None
        seen = len(digest) >= VERSION_CHARS
        try:
            names = await source.approve(tool, digest) if isinstance(source, Quarantine) and seen else ()
        except PinConflictError as error:
            raise LookupError(
                f"{error} for source {name}; review the waiting versions (`toold sources review {name}`)"
            ) from None
        if not names:
            raise LookupError(self._nothing_to_approve(name, tool, digest))
        return names

    async def reload_pins(self, revisions: Mapping[str, int]) -> list[str]:
        """Compares the sources with the pins that other nodes have changed. ``revisions`` are those of the stored pins,
        by name. Returns the problems of pins that cannot be read.
        """
        problems = []
        for managed in (*self._active.values(), *self._pending.values()):
            source: object = managed.source
            if isinstance(source, Quarantine):
                try:
                    await source.reload_pins(revisions)
                except PinError as error:
                    problems.append(str(error))
        return problems

    def _nothing_to_approve(self, name: str, tool: str, digest: str) -> str:
        if problem := self.unknown(name):
            return problem
        waiting = self.waiting(name)
        versions = [version.digest[:VERSION_CHARS] for version in waiting if version.name == tool]
        if versions:
            return (
                f"{tool[:80]!r} of source {name} has changed meanwhile: its version is {versions[0]}, not "
                f"{digest[:VERSION_CHARS]!r}; review it (`toold sources review {name}`)"
            )
        listed = ", ".join(version.name for version in waiting) or "none"
        return f"source {name} has no quarantined tool {tool[:80]!r}; quarantined: {listed}"

    async def loaded(self) -> None:
        """Returns once each source has tools or has failed."""
        while any(state.state == "loading" for state in self.states):  # noqa: ASYNC110 - an event would be one more state to maintain
            await asyncio.sleep(_POLL_S)

    async def close(self) -> None:
        """Ends all sources."""
        for managed in (*self._active.values(), *self._pending.values()):
            self._end(managed)
        self._active, self._pending = {}, {}
        if self._closing:
            await asyncio.wait(self._closing)

    def _start(self, name: str, settings: SourceSettings) -> _ManagedSource:
        source = self._open(name, settings)
        return _ManagedSource(name, settings, source, self._published, self._restored, lambda: self.on_quarantine(name))

    def _restored(self, managed: _ManagedSource) -> None:
        if self._active.get(managed.name) is managed:
            self._on_change()

    def _published(self, managed: _ManagedSource) -> None:
        if self._pending.get(managed.name) is managed:
            del self._pending[managed.name]
            self._end(self._active[managed.name])
            self._active[managed.name] = managed
        if self._active.get(managed.name) is managed:
            self._on_change()

    def _drop_pending(self, name: str) -> None:
        if name in self._pending:
            self._end(self._pending.pop(name))

    def _end(self, managed: _ManagedSource) -> None:
        closing = asyncio.create_task(self._close(managed), name=f"end of source {managed.name}")
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self, managed: _ManagedSource) -> None:
        managed.task.cancel()
        await asyncio.wait([managed.task])
        await managed.source.close()
