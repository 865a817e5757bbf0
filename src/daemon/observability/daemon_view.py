"""The read-only view of the daemon for its tools: state, tools, recent calls. Implements ``tools.DaemonView``."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ...audit import AuditSender
from ...call_hooks import CallHooks
from ...protocol.daemon_address import CONFIGURATION_REFUSED
from ...protocol.error_codes import ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...providers import Model, ModelCatalog
from ...sources import SourceManager
from ...store import Store, StoreError, day_of
from ...tools import AUTO, ToolRegistry
from ...version import __version__
from ..checks import self_checks
from ..config.fallback_settings import FallbackLists
from ..dispatch import ProviderBudgets, ProviderLimiter, Router
from ..dispatch.budget import Budget
from ..hosted_registries import HostedRegistries
from ..persistence.result_files import ResultFiles
from ..provider_setup import ConfiguredProviders
from . import status_report
from .model_availability import ModelAvailability

STORE_TIMEOUT_S: Final = 2.0
"""The maximum time for which ``self-check`` waits for the disk."""


class DaemonProblem(NamedTuple):
    """A problem of the daemon. The detail may have paths, names and texts of other systems."""

    summary: str
    """The text for every caller."""
    detail: str
    """The text for operators."""


class ClusterView(Protocol):
    """The nodes that share the database."""

    @property
    def problems(self) -> Sequence[DaemonProblem]: ...

    @property
    def may_answer(self) -> bool:
        """Whether this node may answer for sessions that can be resumed."""
        ...

    async def rows(self) -> list[dict[str, Any]]:
        """Returns one object per node that lives or drains."""
        ...


@dataclass(kw_only=True, eq=False)
class LiveDaemonView:
    """Implements ``tools.DaemonView``. Never writes and takes no permits."""

    catalog: ModelCatalog
    started_at: float
    """Unix time in seconds."""
    started_monotonic: float
    """The same instant on the monotonic clock."""
    store: Store
    sender: AuditSender | None
    vendors: ConfiguredProviders
    limiters: Mapping[str, ProviderLimiter]
    budget: Budget
    provider_budgets: ProviderBudgets
    availability: ModelAvailability
    router: Callable[[], Router]
    """Returns the router; a function, because the router is constructed with this view."""
    connections: Callable[[], int]
    chosen_model: str | None
    """The model of calls that do not name one, or ``AUTO``; None if no vendor is available. A reload replaces it,
    ``catalog`` and ``locale``."""
    locale: str | None = None
    """The language in which models answer."""
    fallbacks: FallbackLists = field(default_factory=FallbackLists)
    """The fallback models. A reload replaces them."""
    sources: SourceManager
    results: ResultFiles
    agent_registry: HostedRegistries
    cluster: "ClusterView | None" = None
    """The nodes that share the database; None if only this daemon uses it."""
    hooks: CallHooks
    reload_error: str | None = None
    """The reason why the last reload was refused; None if it succeeded."""

    def default_model(self) -> str:
        if self.chosen_model is None and self.vendors.providers:
            problem = "no provider has a default model; name a model, or set default_model"
            raise ServiceUnavailableError(f"The call names no model, and {problem}.", transient=False)
        if self.chosen_model is None:
            raise ServiceUnavailableError(" ".join(self.vendors.absent.values()), transient=False)
        return self.chosen_model

    def fallback(self, tool: str, provider: str) -> tuple[str, ...]:
        return self.fallbacks.of(tool, provider)

    def providers(self) -> list[dict[str, Any]]:
        return status_report.provider_rows(self.vendors.infos, self.vendors.providers, self.vendors.absent)

    @property
    def registry(self) -> ToolRegistry:
        """The current tools."""
        return self.router().catalog.registry

    def health(self, principal: Principal | None) -> dict[str, Any]:
        operator = principal is not None and principal.operator
        return status_report.health(
            self.router(),
            version=__version__,
            started_at=self.started_at,
            connections=self.connections(),
            problems=[problem.detail if operator else problem.summary for problem in self._problems()],
            may_answer=self.cluster is None or self.cluster.may_answer,
        )

    def _problems(self) -> list[DaemonProblem]:
        problems = [DaemonProblem("a tool cannot be used", problem) for problem in self.registry.problems]
        catalog = self.router().catalog
        problems += [
            DaemonProblem("a toolset names a tool that does not exist", problem) for problem in catalog.problems
        ]
        problems += [DaemonProblem("a source fails", problem) for problem in self.sources.problems]
        problems += [
            DaemonProblem("an agent of the registry is not as the registry has it", problem)
            for problem in self.agent_registry.problems
        ]
        problems += [DaemonProblem("a hook fails", problem) for problem in self.hooks.problems]
        if self.store.problem is not None:
            detail = f"the database cannot be written ({self.store.problem}); only local calls are accepted"
            problems.append(DaemonProblem("the database cannot be written; only local calls are accepted", detail))
        if self.results.problem is not None:
            summary = "the bucket of results cannot be used; results of more than 1 MiB are refused"
            problems.append(DaemonProblem(summary, f"{summary}: {self.results.problem}"))
        if self.store.damage is not None:
            problems.append(DaemonProblem("the database is damaged", self.store.damage))
        if self.cluster is not None:
            problems += self.cluster.problems
        if self.reload_error is not None:
            detail = f"{CONFIGURATION_REFUSED}: {self.reload_error}"
            problems.append(DaemonProblem(CONFIGURATION_REFUSED, detail))
        return problems

    @property
    def simulated(self) -> bool:
        """Whether the simulator replaces any vendor."""
        return any(provider.simulated for provider in self.vendors.providers.values())

    def listed(self, model: Model) -> bool | None:
        return self.availability.listed(model)

    async def self_check(self, principal: Principal) -> list[dict[str, Any]]:
        now = time.time()
        expected = self.started_at + time.monotonic() - self.started_monotonic
        problem, newest, remote = await self._probe_store()
        free = await asyncio.to_thread(_free_bytes, self.store.path)
        chosen = self.chosen_model
        model = None if chosen is None or chosen == AUTO else self.catalog.resolve(chosen)
        available = [
            model
            for model in self.catalog.models
            if model.provider in self.limiters and self.listed(model) is not False
        ]
        checks = [
            self_checks.store(self.store.problem, self.store.damage, dropped=self.store.audit.rows_dropped),
            self_checks.journal(problem),
            *(
                self_checks.provider(row["label"], row["missing"], limiter.state if limiter else None)
                for row in self.providers()
                for limiter in [self.limiters.get(row["name"])]
            ),
            self_checks.disk(free),
            self_checks.clock(now, expected=expected, newest=newest),
            self_checks.audit(remote, sent=self.sender is not None),
            self_checks.tools(self.registry.problems),
            self_checks.automatic_model()
            if chosen == AUTO
            else self_checks.default_model(model, None if model is None else self.listed(model)),
            self_checks.budget(self.budget.amounts, self.budget.state()["spent"], available),
        ]
        return [self_checks.as_data(check if principal.operator else self_checks.summary(check)) for check in checks]

    async def _probe_store(self) -> tuple[str | None, float | None, dict[str, Any] | None]:
        """(commit error or None, start of the last call, state of the audit sender)."""
        try:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                await self.store.sync()
                newest = await self.store.audit.recent(1)
                remote = await self.sender.status() if self.sender else None
        except StoreError as error:
            return error.reason, None, None
        except TimeoutError:
            return f"no answer within {STORE_TIMEOUT_S:g} s", None, None
        return None, newest[0].started_at if newest else None, remote

    def running(self, principal: Principal) -> list[dict[str, Any]]:
        now = time.monotonic()
        return [
            status_report.running_row(call, now) for call in self.router().calls if call.session.principal == principal
        ]

    async def paused(self, principal: Principal) -> list[dict[str, Any]]:
        now = time.time()
        calls = await self.router().paused.paused_calls(principal)
        return [
            {"session": call.session.label, "session_id": call.session.id, **status_report.paused_row(call, now)}
            for call in calls
        ]

    async def ended(
        self, principal: Principal, limit: int, *, tool: str | None = None, outcome: str | None = None
    ) -> list[dict[str, Any]]:
        try:
            await self.store.flush()
            rows = await self.store.audit.ended_calls(principal.name, limit, tool=tool, outcome=outcome)
        except StoreError as error:
            raise ServiceUnavailableError(f"The log cannot be read ({error.reason}); try again later.") from None
        return [msgspec.to_builtins(row) for row in rows]

    async def status(self, principal: Principal, *, recent: int, days: int) -> dict[str, Any]:
        shown = {
            **self.health(principal),
            "pid": os.getpid(),
            "simulated": self.simulated,
            "default_model": self.chosen_model,
            "tools": len(self.registry.tools),
            "limits": status_report.limits(self.router(), self.limiters),
            "providers": self.providers(),
            "sources": [
                msgspec.to_builtins(state if principal.operator else msgspec.structs.replace(state, problem=None))
                for state in self.sources.states
            ],
            "budget": self.budget.state(),
            "provider_budgets": self.provider_budgets.states(),
        }
        if self.cluster is not None:
            shown["nodes"] = [_node_row(row, operator=principal.operator) for row in await self.cluster.rows()]
        if self.agent_registry.settings is not None:
            shown["registry"] = status_report.registry_report(self.agent_registry, operator=principal.operator)
        if principal.operator:
            shown["audit"] = {
                "written": self.store.audit.rows_written,
                "dropped": self.store.audit.rows_dropped,
                "problem": self.store.problem or self.store.damage,
                "remote": {"state": "off"},
            }
        try:
            shown |= await self._calls_seen_by(principal, recent=recent, days=days)
            if principal.operator and self.sender:
                shown["audit"]["remote"] = await self.sender.status()
        except StoreError as error:
            shown["problems"].append(str(error) if principal.operator else "the database cannot be read")
        return shown

    async def _calls_seen_by(self, principal: Principal, *, recent: int, days: int) -> dict[str, Any]:
        """The totals, usage and recent calls of a principal; for an operator, of all principals."""
        audit, name = self.store.audit, None if principal.operator else principal.name
        since = day_of(time.time() - (days - 1) * 86400)
        rows = await (audit.recent(recent) if name is None else audit.ended_calls(name, recent))
        return {
            "totals": status_report.totals_row(await audit.totals(name)),
            "usage": status_report.usage_rows(await audit.usage_since(since, name) if days else []),
            "recent": [status_report.ended_row(row) for row in rows],
            "paused": [
                {**status_report.paused_row(call, time.time()), "principal": call.session.principal}
                for call in await self.store.journal.paused_calls(name)
            ],
        }


def _free_bytes(database: Path) -> int | None:
    try:
        return shutil.disk_usage(database.parent).free
    except OSError:
        return None


def _node_row(row: dict[str, Any], *, operator: bool) -> dict[str, Any]:
    """A node for ``status``; only operators see the details of its problems."""
    return row if operator else {key: value for key, value in row.items() if key != "problems"}
