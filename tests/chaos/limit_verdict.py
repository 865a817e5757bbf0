"""The verdict on the limits of all nodes together: a pure function from what was counted outside of the nodes.

- **Permits** of a provider and **running calls** of a token: the requests that the stand-in vendor worked on at once.
  A request counts from its arrival until the first of these: its answer, the end of its connection, and the moment at
  which the node that sent it was declared dead. So the requests of a node that was killed or paused count as long as
  other nodes could know of them. Vendors know no leases: how many a vendor that goes on for dead nodes would have
  worked on at once is a figure, not a promise.
- **Budgets**: the sum of the prices that the vendor charges. It charges for each answer, and also for the requests of a
  node that was killed or declared dead before the answer, which it works on to the end. It charges nothing for what a
  living node gave up. No more than the budget may be charged, and no more than the database has booked.
- **Quotas of a day**: effects. **Quotas of a minute** and **rates**: the effects, or the requests that the API got, in
  any interval of time. A call may be late by a pause of its node, so those of a longer time may come in a shorter one.
"""

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Final

import msgspec

from .stand_in_vendor import COST, VendorRequest

_CLOSED_LATE_S: Final = 0.25
"""How much later the vendor may see that a connection was closed than the node closed it and used its permit again."""
_EXACT: Final = 1e-6
"""More than the rounding error of a sum of amounts, in dollars."""


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """One process of a node. Times are Unix times in seconds."""

    node: str
    started: float
    """When it entered itself in the database."""
    dead: float = inf
    """When it was declared dead, or left, by the database's clock."""
    lost: float = inf
    """When it was killed or declared dead; never, if it stopped in an orderly way."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was seen of one limit."""

    name: str
    limit: float
    seen: float
    """At most the limit."""
    reached: bool
    """Whether the run came so near to the limit that it could have exceeded it."""

    @property
    def exceeded(self) -> bool:
        return self.seen > self.limit + _EXACT

    def __str__(self) -> str:
        return f"{self.seen:g} of {self.limit:g}"


def process_of(node: str, at: float, processes: Sequence[NodeProcess]) -> NodeProcess:
    """The process that a node had at a time: the last one that had started."""
    started = [each for each in processes if each.node == node and each.started <= at]
    return max(started, key=lambda each: each.started, default=NodeProcess(node, 0.0))


def most_at_once(intervals: Iterable[tuple[float, float]]) -> int:
    """How many intervals overlap at most. One that begins when another one ends does not overlap it."""
    changes = [change for begin, end in intervals if begin < end for change in ((begin, 1), (end, -1))]
    running = peak = 0
    for _, change in sorted(changes):
        running += change
        peak = max(peak, running)
    return peak


def counted(request: VendorRequest, process: NodeProcess) -> tuple[float, float]:
    """From when to when a request counts; it ends before it begins if it does not count at all."""
    return request.arrived, min(request.answered, request.gone - _CLOSED_LATE_S, process.dead)


def charged(request: VendorRequest, process: NodeProcess, given_up: Collection[str] = ()) -> bool:
    """Whether the vendor charges for a request. ``given_up``: the calls that were cancelled."""
    if request.call in given_up and process.lost == inf:
        return False  # the answer and the end of the connection may have crossed
    return request.answered < inf or request.gone >= process.lost


def most_within(times: Iterable[float], seconds: float) -> int:
    """How many of the times are within an interval of this length at most."""
    ordered, first, most = sorted(times), 0, 0
    for number, time in enumerate(ordered):
        while ordered[first] < time - seconds:
            first += 1
        most = max(most, number - first + 1)
    return most


def fastest(times: Iterable[float], *, per_second: float, late_s: float) -> float:
    """The burst that a rate must have for this: the excess, over all intervals, of the times in it over what the rate
    permits in it, if each time may be late by up to ``late_s``.
    """
    # With b_i = i - rate * t_i, the excess of the interval from i to j is b_j - b_i + 1 - rate * late.
    lowest, most = inf, 0.0
    for number, time in enumerate(sorted(times)):
        value = number - per_second * time
        lowest = min(lowest, value)
        most = max(most, value - lowest + 1 - per_second * late_s)
    return most


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The limits of a run."""

    permits: int
    running: int
    budget: float
    """Of a principal, in dollars a day."""
    provider_budget: float
    """Of a provider, in dollars a day."""
    calls_per_day: int
    calls_per_minute: int
    rate_per_minute: float
    burst: int
    late_s: float
    """How late a call may be that a node holds back, because it is paused or does not reach the database."""


@dataclass(frozen=True, slots=True)
class LimitEvidence:
    """What was counted outside of the nodes."""

    requests: Sequence[VendorRequest]
    processes: Sequence[NodeProcess]
    effects: Sequence[tuple[str, float]]
    """The ids of calls that wrote, and the monotonic times."""
    looks: Sequence[float]
    """When the API was asked."""
    booked: Mapping[str, float]
    """Budget → what the database says is spent, in dollars."""
    refused: Mapping[str, int]
    """Principal → how many calls a limit refused."""
    cancelled: Sequence[str] = ()
    """The ids of the calls that were cancelled."""
    days: int = 1
    """In how many UTC days the run was."""


def judge_limits(settings: LimitSettings, evidence: LimitEvidence) -> list[Judged]:
    """What was seen of each limit. The id of a call begins with its principal."""
    of = {id(request): process_of(request.node, request.arrived, evidence.processes) for request in evidence.requests}

    cancelled = frozenset(evidence.cancelled)

    def at_once(requests: Iterable[VendorRequest]) -> int:
        return most_at_once(counted(request, of[id(request)]) for request in requests)

    def spent(requests: Iterable[VendorRequest]) -> float:
        return round(sum(COST * charged(request, of[id(request)], cancelled) for request in requests), 6)

    def times(principal: str) -> list[float]:
        return [at for call, at in evidence.effects if _principal(call) == principal]

    permits = at_once(each for each in evidence.requests if each.provider == "permits")
    running = at_once(each for each in evidence.requests if _principal(each.call) == "running")
    judged = [
        Judged("requests to the vendor at once", settings.permits, permits, permits >= settings.permits),
        Judged("running calls of a token", settings.running, running, running >= settings.running),
    ]
    for name, scope, amount, requests in (
        ("a token", "principal:token:spending", settings.budget, _of_principal(evidence.requests, "spending")),
        ("a provider", "provider:budget", settings.provider_budget, _of_provider(evidence.requests, "budget")),
    ):
        limit, charges, booked = amount * evidence.days, spent(requests), evidence.booked.get(scope, 0.0)
        reached = booked > limit - 2 * COST and evidence.refused.get("spending", 0) > 0
        judged += [
            Judged(f"budget of {name}, charged", limit, charges, reached),
            Judged(f"budget of {name}, booked", limit, booked, reached),
            Judged(f"budget of {name}, charged of booked", booked, charges, reached),
        ]
    day, minute = len(times("daily")), most_within(times("minutely"), 60 - settings.late_s)
    per_second, burst = settings.rate_per_minute / 60, settings.burst
    beyond = fastest(evidence.looks, per_second=per_second, late_s=settings.late_s)
    waited = fastest(evidence.looks, per_second=per_second, late_s=0.0) > burst - 1
    return [
        *judged,
        Judged("calls of a day", settings.calls_per_day * evidence.days, day, evidence.refused.get("daily", 0) > 0),
        Judged("calls of a minute", settings.calls_per_minute, minute, evidence.refused.get("minutely", 0) > 0),
        Judged("calls of a source beyond its rate", burst, round(beyond, 1), waited),
    ]


def at_once_with_dead(requests: Iterable[VendorRequest]) -> int:
    """How many requests a vendor would have worked on at once if it goes on for callers that have gone."""
    return most_at_once((request.arrived, min(request.done, request.answered)) for request in requests)


def save_limits(path: Path, settings: LimitSettings, evidence: LimitEvidence) -> None:
    """Writes what was counted; infinite times are null."""
    path.write_bytes(msgspec.json.encode((settings, evidence)))


def load_limits(path: Path) -> tuple[LimitSettings, LimitEvidence]:
    """Reads what ``save_limits`` wrote."""
    settings, evidence = json.loads(path.read_bytes())

    def times(fields: Mapping[str, Any]) -> dict[str, Any]:
        return {name: inf if value is None else value for name, value in fields.items()}

    evidence |= {
        "requests": [VendorRequest(**times(each)) for each in evidence["requests"]],
        "processes": [NodeProcess(**times(each)) for each in evidence["processes"]],
    }
    return LimitSettings(**settings), LimitEvidence(**evidence)


def main(path: str) -> int:
    """Judges what a run has counted."""
    judged = judge_limits(*load_limits(Path(path)))
    for each in judged:
        print(f"{each.name}: {each}{' EXCEEDED' if each.exceeded else '' if each.reached else ' (not reached)'}")
    return int(any(each.exceeded for each in judged))


def _principal(call: str) -> str:
    return call.split("-", 1)[0]


def _of_principal(requests: Iterable[VendorRequest], principal: str) -> list[VendorRequest]:
    return [each for each in requests if _principal(each.call) == principal]


def _of_provider(requests: Iterable[VendorRequest], provider: str) -> list[VendorRequest]:
    return [each for each in requests if each.provider == provider]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
