"""Which models the vendors list for the keys in use: asked in the background after the start, and now and then."""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from ...protocol.error_codes import CallError
from ...providers import Model
from ..dispatch import ProviderLimiter

ASK_EVERY_S: Final = 3600.0
"""Vendors add and remove models within weeks."""
ASK_AGAIN_S: Final = 300.0
"""After a vendor did not answer."""
TIMEOUT_S: Final = 20.0

_log = structlog.get_logger(__name__)


class ModelAvailability:
    """The vendors' lists as they last gave them; what a vendor did not give, or not the last time, is unknown."""

    def __init__(self, gates: Mapping[str, ProviderLimiter]) -> None:
        self._gates = gates
        self._lists: dict[str, frozenset[str]] = {}

    def listed(self, model: Model) -> bool | None:
        """Whether the model's vendor lists it; None where that is not known."""
        ids = self._lists.get(model.provider)
        return None if ids is None else model.id in ids

    async def keep(self) -> None:
        """For as long as the daemon runs: have the lists, one vendor beside the other."""
        await asyncio.gather(*(self._keep(gate) for gate in self._gates.values()))

    async def _keep(self, gate: ProviderLimiter) -> None:
        await gate.provider.warm_up()  # which takes seconds, in which nobody else should wait for a permit
        while True:
            answered = await self.ask(gate)
            await asyncio.sleep(ASK_EVERY_S if answered else ASK_AGAIN_S)

    async def ask(self, gate: ProviderLimiter) -> bool:
        """Ask one vendor for its list, which costs nothing; False where there is none to be had now.

        It takes one of the provider's permits, and tells its breaker nothing: no caller waits for it.
        """
        name = gate.provider.name
        try:
            async with gate.permits:
                self._lists[name] = frozenset(await gate.provider.models.ids(timeout_s=TIMEOUT_S))
        except CallError as error:
            self._lists.pop(name, None)
            _log.info("a vendor does not list its models", provider=name, code=error.code.value)
            return False
        return True
