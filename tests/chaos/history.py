"""Records what the linearizability check judges: what callers observed, and when effects appeared."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from .linearizability import Operation
from .stand_in_vendor import RATED
from .tally import EXPIRED, LOCAL, Answer, Call, Row

_LOOK_S: Final = 0.02
UNSEEN: Final = frozenset({"chat", RATED})
"""Tools whose executions the effect logs do not show."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One execution: a line of the effect log, and the times between which it was written."""

    line: str
    after: float
    before: float


class EffectWatch:
    """Reads the effect logs of running daemons as they grow."""

    def __init__(self, logs: Sequence[Path]) -> None:
        self.effects: list[Effect] = []
        self._logs = logs
        self._read = dict.fromkeys(logs, 0)
        self._looked_at = monotonic()

    async def watch(self) -> None:
        """Looks until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK_S)

    def look(self) -> None:
        """Reads the whole lines that were written since the last look."""
        after = self._looked_at
        self._looked_at = monotonic()
        for log in self._logs:
            if not log.exists() or log.stat().st_size == self._read[log]:
                continue
            with log.open("rb") as file:
                file.seek(self._read[log])
                added = file.read()
            # A line across two pages of the file can be read while only its beginning is written.
            added = added[: added.rfind(b"\n") + 1]
            self._read[log] += len(added)
            before = monotonic()
            self.effects += [Effect(line, after, before) for line in added.decode("utf-8").splitlines()]


def history(calls: Sequence[Call], effects: Sequence[Effect], rows: Sequence[Row]) -> Iterator[Operation]:
    """The observations of a run that has ended, except for local calls, which may run again."""
    now = monotonic()
    judged = {call.id for call in calls if call.tool != LOCAL and (call.sent or call.answers)}
    for call in calls:
        if call.id in judged:
            yield Operation(call.id, "asked", call.asked_at, call.asked_at, content=call.id)
            yield from (_answered(call, answer) for answer in call.answers)
            for look in call.looks:
                yield Operation(call.id, "looked up", look.asked_at, look.at, look.outcome)
            if not call.answers and not call.given_up:
                yield Operation(call.id, "waited", call.asked_at, now)
    for effect in effects:
        yield Operation(effect.line, "executed", effect.after, effect.before)
    for row in rows:
        # Refused calls have rows too, and so has a repeat whose answer has expired.
        if row.request_id in judged and row.executed != "no" and row.outcome != EXPIRED:
            yield Operation(row.request_id, "recorded", now, now, row.outcome)


def _answered(call: Call, answer: Answer) -> Operation:
    executed = None if call.tool in UNSEEN and answer.executed == "yes" else answer.executed
    content = None if answer.outcome != "ok" else call.id if answer.own else "what another call sent"
    return Operation(call.id, "answered", answer.asked_at, answer.at, answer.outcome, executed, content)
