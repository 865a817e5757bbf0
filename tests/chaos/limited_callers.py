"""The clients of a fault run that reach the limits of all nodes. Each kind has its own token."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, Final

from .callers import CHAT, CallSpec
from .limit_verdict import LimitSettings
from .stand_in_vendor import ANSWER_TOKENS, BURST, COST, PERMITS, RATE_PER_MINUTE, RATED
from .tally import WRITES, Answer

_RUNNING: Final = 2

PRINCIPALS: Final[Sequence[str]] = (
    "permits",
    "others",
    "spending",
    "running",
    "running",
    "daily",
    "minutely",
    "rated",
)
"""The principals of the clients. The first part of a call's id is its principal. Two of them want permits of one
provider, because a node reserves the last one for principals that have none."""


def limit_settings(calls: int, late_s: float) -> LimitSettings:
    """The limits of a run with this many calls: tight enough to be reached in half of its time."""
    some = max(10, calls // 100)
    return LimitSettings(
        permits=PERMITS,
        running=_RUNNING,
        budget=round(1.5 * some * COST, 6),
        provider_budget=round(some * COST / 2, 6),
        calls_per_day=some,
        calls_per_minute=20,
        rate_per_minute=RATE_PER_MINUTE,
        burst=BURST,
        late_s=late_s,
    )


def quota_tables(limits: LimitSettings) -> str:
    """The quotas as settings of the nodes."""
    return f"""
        [quotas.day]
        tools = ["{WRITES}"]
        principals = ["token:daily"]
        calls_per_day = {limits.calls_per_day}
        [quotas.minute]
        tools = ["{WRITES}"]
        principals = ["token:minutely"]
        calls_per_minute = {limits.calls_per_minute}
    """


def token_options(principal: str, limits: LimitSettings) -> Sequence[str]:
    """The options of ``toold token create`` for a principal."""
    if principal == "running":
        return ("--max-running", str(limits.running))
    return ("--daily-budget", f"{limits.budget} USD") if principal == "spending" else ()


_PROVIDERS: Final = {"permits": "permits", "others": "permits"}


@dataclass(frozen=True, slots=True)
class LimitedSpec(CallSpec):
    """A call that a limit covers."""

    model: str = ""

    @property
    def drawn(self) -> bool:
        return False

    @property
    def pause_s(self) -> float:
        return 1.0

    @property
    def arguments(self) -> Mapping[str, Any]:
        if self.tool == CHAT:
            prompt = f"[[sim:say={self.id}]] hold={self.delay_ms}"
            return {"prompt": prompt, "model": f"{self.model}/large", "max_tokens": ANSWER_TOKENS}
        if self.tool == RATED:
            return {"text": self.id}
        return {"text": self.id, "delay_ms": self.delay_ms}

    def answer(self, text: str, structured: Any, *, replayed: bool) -> Answer:
        if self.tool == RATED:
            return Answer("ok", "yes", self.id in text, replayed)
        return CallSpec.answer(self, text, structured, replayed=replayed)


def limited_specs(principal: str, name: str, seed: int) -> Iterator[LimitedSpec]:
    """The endless calls of a client. Pure."""
    chance = Random(f"{seed} {name}")
    tool = {"daily": WRITES, "minutely": WRITES, "rated": RATED}.get(principal, CHAT)
    for number in count():
        model = _PROVIDERS.get(principal, ("budget", "free")[number % 2] if principal == "spending" else "free")
        yield LimitedSpec(
            id=f"{principal}-{name}-{number}",
            tool=tool,
            delay_ms=chance.randrange(200, 1000) if tool == CHAT and principal != "spending" else chance.randrange(50),
            repeat=chance.random() < 0.1,
            cancel_after_s=chance.uniform(0, 1.0) if chance.random() < 0.05 else None,
            model=model,
        )
