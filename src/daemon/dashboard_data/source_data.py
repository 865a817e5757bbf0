"""The data and actions of the pages about sources. Implements ``SourcesPort``."""

from pathlib import PurePath
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from ...protocol.error_codes import InvalidArgumentsError, NotFoundError
from ...sources import SourceManager, SourceState
from ..dispatch import Router
from ..observability.source_log import source_lines
from ..operator_actions import OperatorActions
from ..sign_in_host import SignInHost
from ..transports.dashboard import Viewer
from .action_audit import ActionAudit

MIN_DIGEST_CHARS: Final = 12


class SourceData:
    """Reads the sources and their versions; approves tools, reads sources again, signs in and out."""

    def __init__(
        self,
        sources: SourceManager,
        operations: OperatorActions,
        sign_ins: SignInHost,
        router: Router,
        actions: ActionAudit,
    ) -> None:
        self._sources = sources
        self._operations = operations
        self._sign_ins = sign_ins
        self._router = router
        self._actions = actions

    def states(self) -> list[dict[str, Any]]:
        return [self._row(state) for state in self._sources.states]

    def source(self, name: str) -> dict[str, Any] | None:
        state = next((state for state in self._sources.states if state.name == name), None)
        if state is None:
            return None
        return {
            **self._row(state),
            "tools": [tool for tool in self._router.catalog.registry.tools if tool.source == name],
            "notes": [note for note in self._sources.notes_of(name) if note.kind != "quarantined"],
            "waiting": [msgspec.to_builtins(version) for version in self._sources.waiting(name)],
            "lines": source_lines(name),
            "signs_in": self._sign_ins.signs_in(name),
        }

    async def approve(self, viewer: Viewer, name: str, tool: str, digest: str) -> None:
        with self._actions.recorded(viewer, "approve", source=name, tool=tool, version=digest):
            if len(digest) < MIN_DIGEST_CHARS:
                raise InvalidArgumentsError("An approval names the version that was looked at.")
            await self._operations.approve(name, tool, digest)

    async def refresh(self, viewer: Viewer, name: str) -> None:
        with self._actions.recorded(viewer, "refresh", source=name):
            try:
                self._sources.refresh_one(name)
            except LookupError:
                raise NotFoundError("There is no such source.") from None

    async def sign_in(self, viewer: Viewer, name: str) -> str:
        with self._actions.recorded(viewer, "sign_in", source=name):
            return self._sign_ins.link(name)

    async def sign_out(self, viewer: Viewer, name: str) -> None:
        with self._actions.recorded(viewer, "sign_out", source=name):
            await self._sign_ins.sign_out(name, None)

    def _row(self, state: SourceState) -> dict[str, Any]:
        problem = state.problem and state.problem.removeprefix(f"source {state.name}: ")
        return {**msgspec.to_builtins(state), "problem": problem, "where": self._where(state.name)}

    def _where(self, name: str) -> str:
        """The location of a source: a host or a program, but never a whole URL, which may contain a secret."""
        settings = self._sources.settings_of(name)
        command = getattr(settings, "command", None)
        if command:
            return PurePath(command[0]).name
        place = getattr(settings, "url", None) or getattr(settings, "base_url", None) or getattr(settings, "spec", "")
        return urlsplit(str(place)).hostname or PurePath(str(place)).name
