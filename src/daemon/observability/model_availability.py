"""The models that the vendors list for the configured keys; fetched in the background after the start and hourly."""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from ...protocol.error_codes import CallError
from ...providers import Model, OpenProvider
from ..dispatch import ProviderLimiter

REFRESH_S: Final = 3600.0
"""The interval of updates: vendors add and remove models within weeks."""
RETRY_S: Final = 300.0
"""The delay after a failure."""
TIMEOUT_S: Final = 20.0

_log = structlog.get_logger(__name__)


class ModelAvailability:
    """The vendors' latest model lists. A list that could not be fetched is unknown."""

    def __init__(
        self, limiters: Mapping[str, ProviderLimiter], open_providers: Mapping[str, OpenProvider] | None = None
    ) -> None:
        """``open_providers`` get the lists of their vendors. The simulator lists few models, but answers for all
        models.
        """
        self._open_providers = open_providers or {}
        self._limiters = limiters
        self._lists: dict[str, frozenset[str]] = {}

    def listed(self, model: Model) -> bool | None:
        """Whether the model's vendor lists it; None if unknown."""
        ids = self._lists.get(model.provider)
        return None if ids is None else model.sent_id in ids

    async def keep(self, *, at_once: bool = True) -> None:
        """Keep the lists up to date, all vendors concurrently. Runs until cancelled.

        Unless ``at_once``, a vendor's list is fetched after the first request to it, so that no SDK is loaded before.
        """
        await asyncio.gather(*(self._keep(limiter, at_once=at_once) for limiter in self._limiters.values()))

    async def _keep(self, limiter: ProviderLimiter, *, at_once: bool) -> None:
        if not at_once:
            await limiter.asked.wait()
        await limiter.provider.warm_up()  # before the permit is taken, because it takes seconds
        while True:
            fetched = await self.fetch(limiter)
            await asyncio.sleep(REFRESH_S if fetched else RETRY_S)

    async def fetch(self, limiter: ProviderLimiter) -> bool:
        """Fetch one vendor's list, which is free of charge; returns whether it succeeded.

        Takes one of the provider's permits. Does not affect its circuit breaker, because no caller waits.
        """
        name = limiter.provider.name
        try:
            async with limiter.permits:
                models = await limiter.provider.models.models(timeout_s=TIMEOUT_S)
        except CallError as error:
            self._lists.pop(name, None)
            _log.info("vendor's model list not available", provider=name, code=error.code.value)
            return False
        holder = self._open_providers.get(name)
        if holder is not None and limiter.provider.simulated:
            return True
        self._lists[name] = frozenset(model.id for model in models)
        if holder is not None:
            holder.note_list(models)
        return True
