"""Which models the vendors list: asked once in a while, and unknown where a vendor does not say."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from toold.daemon.dispatch import ProviderLimiter
from toold.daemon.observability.model_availability import ModelAvailability
from toold.protocol.error_codes import ServiceUnavailableError
from toold.providers import ListedModel, ModelCatalog, Provider

CATALOG = ModelCatalog.load()
KIMI, GLM = CATALOG.default("kimi"), CATALOG.default("glm")


class Lister:
    """A vendor that lists these, or fails."""

    label, simulated, transport_name = "Kimi", False, "a script"

    def __init__(self, name: str, *answers: Sequence[str] | Exception) -> None:
        self.name = name
        self.answers = list(answers)
        self.models = SimpleNamespace(models=self._models)
        self.in_use: list[int] = []
        self.gate: Any = None
        self.warmed = 0

    async def warm_up(self) -> None:
        self.warmed += 1

    async def _models(self, *, timeout_s: float) -> tuple[ListedModel, ...]:
        self.in_use.append(self.gate.permits.in_use)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return tuple(map(ListedModel, answer))


def gate_of(lister: Lister) -> ProviderLimiter:
    lister.gate = ProviderLimiter(cast("Provider", lister), 1, on_error=lambda *_: None)
    return cast("ProviderLimiter", lister.gate)


async def test_a_list_says_which_models_are_available() -> None:
    """Before it is there, and of other vendors, nothing is known; it is asked with the provider's permit."""
    lister = Lister("kimi", [KIMI.id, "another"])
    gate = gate_of(lister)
    availability = ModelAvailability({"kimi": gate})
    assert availability.listed(KIMI) is None
    assert await availability.fetch(gate)
    others = [model for model in CATALOG.models if model.provider == "kimi" and model is not KIMI]
    assert (availability.listed(KIMI), availability.listed(others[0]), availability.listed(GLM)) == (True, False, None)
    assert (lister.in_use, gate.permits.in_use) == ([1], 0)


async def test_a_failing_vendor_makes_its_models_unknown() -> None:
    """Its circuit breaker is not affected, and the next attempt may succeed."""
    lister = Lister("kimi", [KIMI.id], *[ServiceUnavailableError("down")] * 9, [KIMI.id])
    gate = gate_of(lister)
    availability = ModelAvailability({"kimi": gate})
    await availability.fetch(gate)
    for _ in range(9):
        assert not await availability.fetch(gate)
        assert availability.listed(KIMI) is None
    assert (gate.state, gate.permits.in_use) == ("closed", 0)
    assert await availability.fetch(gate)
    assert availability.listed(KIMI)


async def test_a_list_can_wait_for_the_first_request() -> None:
    """Without warm-up no SDK is loaded before a call needs it."""
    lister = Lister("kimi", [KIMI.id])
    gate = gate_of(lister)
    availability = ModelAvailability({"kimi": gate})
    keeping = asyncio.create_task(availability.keep(at_once=False))
    for _ in range(5):
        await asyncio.sleep(0)
    assert lister.warmed == 0
    gate.asked.set()
    while availability.listed(KIMI) is None:
        await asyncio.sleep(0)
    assert lister.warmed == 1
    keeping.cancel()
