"""What a tool's context gives access to: conversations, retained results, vendor files, the daemon."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from toold.daemon.dispatch import ConversationCaller
from toold.daemon.persistence.conversation_manager import LockedConversation
from toold.fairness import RunPermit
from toold.protocol.error_codes import CallError
from toold.protocol.tool_call import Principal
from toold.providers import Model, ModelCatalog
from toold.tools import ResultFormat, RetainedResult


class FakeConversations:
    """Records the requested conversations and returns an empty one for each."""

    def __init__(self) -> None:
        self.wanted: list[tuple[str | None, ConversationCaller]] = []

    @asynccontextmanager
    async def hold(
        self, continuation_id: str | None, caller: ConversationCaller, permit: RunPermit, on_wait: Callable[[], None]
    ) -> AsyncIterator[LockedConversation]:
        on_wait()
        self.wanted.append((continuation_id, caller))
        yield LockedConversation(continuation_id or "new")


class FakeResults:
    """Retained results in memory, whose writes can fail or wait."""

    def __init__(self) -> None:
        self.kept: dict[tuple[Principal, str], Any] = {}
        self.refusal: CallError | None = None
        self.ready = asyncio.Event()
        self.ready.set()

    async def keep(
        self, principal: Principal, handle: str, value: Any, rows: list[Any] | None, file_format: ResultFormat
    ) -> RetainedResult:
        await self.ready.wait()
        if self.refusal is not None:
            raise self.refusal
        self.kept[principal, handle] = value if rows is None else rows
        return RetainedResult(handle, 1 if rows is None else len(rows), 7, file_format, "2026-01-01T00:00:00Z")

    async def read(self, principal: Principal, handle: str) -> Any:
        return self.kept[principal, handle]


class FakeOwners:
    """Owners of vendor files in memory."""

    def __init__(self) -> None:
        self.owners: dict[str, Principal] = {}

    async def record(self, provider: str, file_id: str, principal: Principal) -> None:
        self.owners[f"{provider} {file_id}"] = principal

    async def owned(self, provider: str, principal: Principal | None) -> frozenset[str]:
        named = (key.partition(" ") for key, owner in self.owners.items() if principal in (None, owner))
        return frozenset(file_id for name, _, file_id in named if name == provider)

    def forget(self, provider: str, file_id: str) -> None:
        self.owners.pop(f"{provider} {file_id}", None)


class FakeView:
    """The tools' view of a daemon, with fixed values."""

    simulated = False
    locale: str | None = None

    def __init__(self) -> None:
        self.catalog = ModelCatalog.load()

    def default_model(self) -> str:
        return self.catalog.default("kimi").id

    def fallback(self, tool: str, provider: str) -> tuple[str, ...]:
        return ()

    def providers(self) -> list[dict[str, Any]]:
        return []

    def listed(self, model: Model) -> bool | None:
        return None

    def health(self, principal: Principal | None) -> dict[str, Any]:
        return {}

    async def self_check(self, principal: Principal) -> list[dict[str, Any]]:
        return []

    def running(self, principal: Principal) -> list[dict[str, Any]]:
        return []

    async def paused(self, principal: Principal) -> list[dict[str, Any]]:
        return []

    async def ended(
        self, principal: Principal, limit: int, *, tool: str | None = None, outcome: str | None = None
    ) -> list[dict[str, Any]]:
        return []

    async def status(self, principal: Principal, *, recent: int, days: int) -> dict[str, Any]:
        return {"recent": recent}
