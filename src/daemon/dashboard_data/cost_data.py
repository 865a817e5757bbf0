"""The data of the page Cost. Implements ``CostPort``."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...protocol.error_codes import ServiceUnavailableError
from ...store import DailyUsage, StoreError
from ..dispatch import Router
from ..observability.daemon_view import LiveDaemonView
from ..transports.dashboard import Viewer


class CostData:
    """Reads the spending and the budgets."""

    def __init__(self, view: LiveDaemonView, router: Router) -> None:
        self._view = view
        self._router = router

    async def usage(self, day: str, sees: str | None) -> Sequence[DailyUsage]:
        try:
            return await self._view.store.audit.usage_since(day, sees)
        except StoreError as error:
            raise ServiceUnavailableError(f"The audit cannot be read ({error.reason}); try again later.") from None

    def budgets(self, viewer: Viewer) -> Mapping[str, Mapping[str, Any]]:
        principals = self._router.principal_budgets()
        if not viewer.operator:
            principals = {name: state for name, state in principals.items() if name == viewer.name}
        return {
            "all calls": self._view.budget.state(),
            **{f"provider {name}": state for name, state in self._view.provider_budgets.states().items()},
            **principals,
            **{f"agent {name}": state for name, state in self._router.agent_budgets.states().items()},
        }
