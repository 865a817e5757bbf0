"""What an operator may ask of the running daemon: its calls, the end of one, its configuration read again."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
import structlog

from ..protocol.error_codes import InvalidArgumentsError, NotFoundError, ServiceUnavailableError
from ..protocol.name_suggestions import close_names, did_you_mean
from ..sources import PinError, SourceManager
from ..store import Store, StoreError
from .config.setting_sources import SettingsError
from .config.settings_diff import SettingsChanges
from .dispatch import Router
from .observability import status_report

SHOWN_IDS = 5
"""Of the ids that an ambiguous one may mean, so many are named."""

_log = structlog.get_logger(__name__)


class OperatorActions:
    """The operator's desk. What it returns is plain data; what it refuses is a ``CallError`` with its reason."""

    def __init__(
        self, router: Router, store: Store, reload: Callable[[], Awaitable[SettingsChanges]], sources: SourceManager
    ) -> None:
        self._router = router
        self._store = store
        self._reload = reload
        self._sources = sources

    async def calls(self, recent: int) -> dict[str, Any]:
        """``running``, the oldest first, and the ``recent`` calls that ended last, the last one first.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        now = time.monotonic()
        running = [status_report.running_row(call, now) for call in self._router.calls]
        try:
            ended = [status_report.ended_row(row) for row in await self._store.audit.recent(recent)] if recent else []
        except StoreError as error:
            raise ServiceUnavailableError(str(error)) from None
        return {"running": running, "recent": ended}

    async def cancel(self, given: str) -> dict[str, Any]:
        """End a running call by its id, a beginning that no other has, or what stands after the id's dash.

        Returns its row as it was before.

        Raises:
            NotFoundError: no such call runs.
            InvalidArgumentsError: several calls may be meant.
        """
        running = {call.id: call for call in self._router.calls}
        meant = matching(given, running)
        if not meant:
            raise NotFoundError(f"No call {given[:80]!r} runs here; it may have ended. `toold calls` shows what runs.")
        if len(meant) > 1:
            named = ", ".join(meant[:SHOWN_IDS]) + (", …" if len(meant) > SHOWN_IDS else "")
            raise InvalidArgumentsError(f"{given[:80]} may be any of {len(meant)} calls: {named}. Give more of the id.")
        call = running[meant[0]]
        row = status_report.running_row(call, time.monotonic())
        self._router.cancel_by_operator(call.id)
        _log.info("the operator cancels a call", call=call.id, tool=call.tool.name)
        return row

    async def sources(self) -> dict[str, Any]:
        """``sources``: each one that is configured, with its state and how many tools it has."""
        return {"sources": msgspec.to_builtins(self._sources.states)}

    async def approve(self, source: str, tool: str | None) -> dict[str, Any]:
        """Accept a tool that a source holds back, or all of them, as they are now: ``approved`` has their names.

        Raises:
            NotFoundError: there is no such source, or it holds no such tool back.
            ServiceUnavailableError: it cannot be written down.
        """
        try:
            approved = self._sources.approve(source, tool)
        except LookupError as error:
            raise NotFoundError(str(error.args[0])) from None
        except PinError as error:
            raise ServiceUnavailableError(str(error)) from None
        _log.info("the operator approves tools", source=source, tools=approved)
        return {"approved": list(approved)}

    async def stubs(self, toolset: str) -> dict[str, Any]:
        """``modules``: the source of each by its name, with the functions that code of this toolset calls.

        Raises:
            InvalidArgumentsError: there is no such toolset.
        """
        offer = self._router.catalog
        if toolset not in offer.names:
            hint = did_you_mean(close_names(toolset, offer.names, n=1)) or f"there are {', '.join(offer.names)}."
            raise InvalidArgumentsError(f"There is no toolset {toolset[:80]!r}; {hint}")
        stubs = offer.of(toolset).stubs
        # In a thread: hundreds of signatures take part of a second.
        sources = await asyncio.to_thread(lambda: {module: stubs.source_for(module) for module in stubs.modules})
        return {"modules": sources}

    async def reload(self) -> dict[str, Any]:
        """Read the configuration again: which settings are ``reloaded``, and which of them ``needs_restart``.

        Raises:
            InvalidArgumentsError: it cannot be used; nothing was changed.
        """
        try:
            changes = await self._reload()
        except SettingsError as error:
            raise InvalidArgumentsError(str(error)) from None
        return {"reloaded": list(changes.reloaded), "needs_restart": list(changes.needs_restart)}


def matching(given: str, ids: Iterable[str]) -> list[str]:
    """The ids that ``given`` may mean: the one that it is, else those it is all of after the dash, or begins."""
    known = list(ids)
    if given in known:
        return [given]
    numbered = [one for one in known if one.partition("-")[2] == given]
    return numbered or [one for one in known if given and one.startswith(given)]
