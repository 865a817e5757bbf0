"""The operations of the operator API: list and cancel calls, reload, settings, sources, stubs."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog

from ..protocol.error_codes import InvalidArgumentsError, NotFoundError, ServiceUnavailableError
from ..protocol.name_suggestions import close_names, did_you_mean
from ..protocol.tool_call import ClientInfo
from ..sources import PinError, SourceManager
from ..store import Store, StoredDetachedCall, StoreError
from .config.reloadable_settings import SettingsChanges
from .config.setting_sources import SettingsError
from .config.settings import Settings
from .config.settings_report import settings_report
from .dispatch import Router
from .hosted_registries import HostedRegistries
from .observability import status_report
from .observability.peer_calls import PeerView
from .sign_in_host import SignInHost

SHOWN_IDS = 5
"""The maximum number of ids in the error for an ambiguous id."""

_log = structlog.get_logger(__name__)


class OperatorActions:
    """The operations. They return plain data, or raise a ``CallError`` with the reason."""

    def __init__(
        self,
        router: Router,
        store: Store,
        *,
        reload: Callable[[], Awaitable[SettingsChanges]],
        sources: SourceManager,
        sign_ins: SignInHost,
        agent_registry: HostedRegistries,
        published: Callable[[], Awaitable[None]],
        settings: Callable[[], Settings],
        problems: Callable[[], Sequence[str]],
        sign_in_link: Callable[[], str | None],
        peers: PeerView | None = None,
    ) -> None:
        """``peers``: the other nodes. ``published`` returns once the catalog contains all changes of the sources.
        ``settings`` returns the settings in effect, ``problems`` the problems that ``toold status`` lists."""
        self._router = router
        self._store = store
        self._reload = reload
        self._sources = sources
        self.sign_ins = sign_ins
        self._agent_registry = agent_registry
        self._published = published
        self._settings = settings
        self._problems = problems
        self._sign_in_link = sign_in_link
        self._peers = peers

    async def calls(self, recent: int) -> dict[str, Any]:
        """``running`` calls, oldest first, then paused ones; and the ``recent`` ended calls, newest first. In a
        cluster, these are the calls of all nodes, with their ``node``; ``unanswered``: the nodes that have not
        answered.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        now = time.monotonic()
        running = [status_report.running_row(call, now) for call in self._router.calls]
        unanswered: dict[str, Any] = {}
        if self._peers is not None:
            peers = await self._peers.running_calls()
            running = [{**row, "node": self._peers.own_name} for row in running] + list(peers.running)
            unanswered["unanswered"] = peers.unanswered
        running += [_paused_row(call) for call in await self._router.paused.paused_calls(None)]
        try:
            ended = [status_report.ended_row(row) for row in await self._store.audit.recent(recent)] if recent else []
        except StoreError as error:
            raise ServiceUnavailableError(str(error)) from None
        return {"running": running, "recent": ended, **unanswered}

    async def cancel(self, id_or_prefix: str) -> dict[str, Any]:
        """Cancel a running or paused call by its id, a unique prefix of it, or the part after the id's dash.

        Returns the call's row from before the cancel.

        Raises:
            NotFoundError: no such call runs or is paused.
            InvalidArgumentsError: the id is ambiguous.
            ServiceUnavailableError: the database cannot be read or written.
        """
        now = time.monotonic()
        running = {call.id: status_report.running_row(call, now) for call in self._router.calls}
        matches = matching(id_or_prefix, running)
        unanswered: Sequence[str] = ()
        if not matches and self._peers is not None:
            peers = await self._peers.running_calls()
            running = {row["id"]: row for row in peers.running}
            matches = matching(id_or_prefix, running)
            unanswered = peers.unanswered
        if not matches:  # a running call can be cancelled even if the database cannot be read
            running = {call.call_id: _paused_row(call) for call in await self._router.paused.paused_calls(None)}
            matches = matching(id_or_prefix, running)
        if not matches:
            hint = f" These nodes have not answered: {', '.join(unanswered)}." if unanswered else ""
            raise NotFoundError(
                f"No running call {id_or_prefix[:80]!r}; it may have ended. `toold calls` lists them.{hint}"
            )
        if len(matches) > 1:
            shown = ", ".join(matches[:SHOWN_IDS]) + (", …" if len(matches) > SHOWN_IDS else "")
            raise InvalidArgumentsError(
                f"{id_or_prefix[:80]} matches {len(matches)} calls: {shown}. Give more of the id."
            )
        row = running[matches[0]]
        if "node" in row and self._peers is not None:
            await self._peers.cancel(None, None, row["id"])
        else:
            await self._router.cancel_by_operator(row["id"])
        _log.info("call cancelled by the operator", call=row["id"], tool=row["tool"])
        return row

    async def sources(self) -> dict[str, Any]:
        """``sources``: each configured source, with its state and number of tools."""
        return {"sources": msgspec.to_builtins(self._sources.states)}

    async def registry(self) -> dict[str, Any]:
        """``agents``: each agent of the registry, with its state; ``problems``: their problems."""
        return {
            "agents": msgspec.to_builtins(self._agent_registry.states),
            "problems": list(self._agent_registry.problems),
        }

    async def registered_agent(self, name: str) -> dict[str, Any]:
        """The definition of a hosted agent of the registry, with all defaults.

        Raises:
            NotFoundError: there is no agent with this name.
        """
        for known in self._agent_registry.known:
            if known.hosted and known.good is not None and known.good.agent.name == name:
                return known.good.agent.model_dump(mode="json")
        raise NotFoundError(f"No agent {name[:80]!r} of the registry is hosted; `toold agents list` lists them.")

    async def quarantined(self, source: str) -> dict[str, Any]:
        """``quarantined``: the versions of a source's tools and prompts that wait for approval.

        Raises:
            NotFoundError: there is no such source.
        """
        if problem := self._sources.unknown(source):
            raise NotFoundError(problem)
        return {"quarantined": msgspec.to_builtins(list(self._sources.waiting(source)))}

    async def approve(self, source: str, tool: str, digest: str) -> dict[str, Any]:
        """Approve a source's quarantined tool in the version whose hash begins with ``digest``: ``approved`` has its
        name.

        Raises:
            NotFoundError: there is no such source, or no such quarantined tool.
            ServiceUnavailableError: the approval cannot be stored.
        """
        try:
            approved = await self._sources.approve(source, tool, digest)
        except LookupError as error:
            raise NotFoundError(str(error.args[0])) from None
        except PinError as error:
            raise ServiceUnavailableError(str(error)) from None
        await self._published()
        _log.info("tools approved by the operator", source=source, tools=approved)
        return {"approved": list(approved)}

    async def stubs(self, toolset: str) -> dict[str, Any]:
        """``modules``: source text by module name, with the functions of this toolset's tools.

        Raises:
            InvalidArgumentsError: there is no such toolset.
        """
        offer = self._router.catalog
        if toolset not in offer.names:
            hint = did_you_mean(close_names(toolset, offer.names, n=1)) or f"the toolsets are {', '.join(offer.names)}."
            raise InvalidArgumentsError(f"There is no toolset {toolset[:80]!r}; {hint}")
        stubs = offer.view(toolset).stubs
        # In a thread: hundreds of signatures take a fraction of a second.
        sources = await asyncio.to_thread(lambda: {module: stubs.source_for(module) for module in stubs.modules})
        return {"modules": sources}

    async def settings(self) -> dict[str, Any]:
        """The settings in effect (``settings_report``), ``directory``: the daemon's working directory, and its
        ``problems``."""
        report = settings_report(self._settings())
        return report | {"directory": str(Path.cwd()), "problems": list(self._problems())}

    async def ui_link(self) -> dict[str, Any]:
        """``path``: a link that opens the dashboard signed in, once, within a minute.

        Raises:
            ServiceUnavailableError: there is no dashboard.
        """
        path = self._sign_in_link()
        if path is None:
            raise ServiceUnavailableError("This daemon has no dashboard (ui = false).", transient=False)
        return {"path": path}

    async def reload(self) -> dict[str, Any]:
        """Reload the configuration; returns the settings ``reloaded`` and those that ``needs_restart``.

        Raises:
            InvalidArgumentsError: the configuration is invalid; nothing has changed.
        """
        try:
            changes = await self._reload()
        except SettingsError as error:
            raise InvalidArgumentsError(str(error)) from None
        return {"reloaded": list(changes.reloaded), "needs_restart": list(changes.needs_restart)}


def _paused_row(call: StoredDetachedCall) -> dict[str, Any]:
    """A paused call in the form of ``running_row``; its remaining time is that of its requests."""
    now = time.time()
    return {
        **status_report.paused_row(call, now),
        "parent": None,
        "session": call.session.label,
        "session_id": call.session.id,
        "principal": call.session.principal,
        "client": msgspec.json.decode(call.client, type=ClientInfo).name,
        "started_at": call.started_at,
        "remaining_s": None if call.expires_at is None else round(max(0.0, call.expires_at - now), 3),
        "progress": None,
    }


def matching(prefix: str, ids: Iterable[str]) -> list[str]:
    """The ids that match ``prefix``: the whole id, else the part after the dash, else a prefix."""
    known = list(ids)
    if prefix in known:
        return [prefix]
    by_number = [call_id for call_id in known if call_id.partition("-")[2] == prefix]
    return by_number or [call_id for call_id in known if prefix and call_id.startswith(prefix)]
