"""What a fault run came to: promises held against what was seen. Pure: observations in, figures and breaches out.

What is judged, and by what:

- every call has a terminal answer, from whichever daemon process it came: by what its caller was told;
- no effect is there twice, each is there that a caller was told of, and none that was denied: by the lines of the log;
- an answer is its caller's own: by the text in it;
- one audit row a call that started, which says what the caller was told: by the database's rows;
- every row is in PostgreSQL, once: by the ids there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

WRITES: Final = "sim_effect"
"""The tool whose effect is counted; answers of others have no line."""
LOCAL: Final = "echo"
"""Not journalled: a crash may take its row, and may have it run again."""
UNKNOWN: Final = "OUTCOME_UNKNOWN"
EXPIRED: Final = "RESULT_EXPIRED"


@dataclass(frozen=True, slots=True)
class Answer:
    """A terminal answer that a caller was given."""

    outcome: str
    """``ok``, or the error's code."""
    executed: str
    """``yes`` where it is ok."""
    own: bool
    """It is an error, or holds what this caller sent."""
    replayed: bool = False


@dataclass(slots=True)
class Call:
    """One call under one id, however often it was sent; the id is the only one of its kind in the run."""

    id: str
    tool: str
    answers: list[Answer] = field(default_factory=list)
    """The first is the call's; those after it came to repeats, or were redelivered."""
    lost: str | None = None
    """Why its caller stopped waiting without an answer."""
    sent: bool = True
    """Whether it may have left the client; one that never did was not lost."""


@dataclass(frozen=True, slots=True)
class Row:
    """An audit row, as far as it is judged."""

    id: str
    request_id: str
    outcome: str
    executed: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found when all was over."""

    lines: Sequence[str]
    """Of the effect log: the ids of the calls that wrote them."""
    rows: Sequence[Row]
    """Of the local database."""
    remote_ids: Sequence[str] | None
    """Of the rows in PostgreSQL; None where there was none in the run."""
    tracebacks: int = 0
    """In the daemon's log."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Figures by name, in the order in which they are to be read, and the promises that were broken: whose ids."""

    figures: Mapping[str, int | str]
    breaches: Mapping[str, Sequence[str]]

    @property
    def kept(self) -> bool:
        return not any(self.breaches.values())


def tally(calls: Sequence[Call], evidence: Evidence) -> Tally:
    """Hold what callers were told against what is there."""
    lines = Counter(evidence.lines)
    # Refusals at the door (such as SERVICE_UNAVAILABLE from a daemon that goes down) are rows too, of a call that did
    # not start; the call may be sent again under its id. So are those of repeats whose answer is not kept any more.
    started: dict[str, list[Row]] = {}
    for row in evidence.rows:
        if row.executed != "no" and row.outcome != EXPIRED:
            started.setdefault(row.request_id, []).append(row)
    known = {call.id for call in calls}
    journalled = [call for call in calls if call.tool != LOCAL]
    writes = [call for call in calls if call.tool == WRITES]
    breaches = {
        "lost": [
            f"{call.id}: {EXPIRED if call.answers else call.lost}"
            for call in calls
            if (call.sent and not call.answers) or (call.answers and _first(call) == EXPIRED)
        ],
        "run twice": [each for each, times in lines.items() if times > 1],
        "answers to the wrong caller": [call.id for call in calls if not all(answer.own for answer in call.answers)],
        "two answers that differ": [
            f"{call.id}: {', '.join(answer.outcome for answer in call.answers)}"
            for call in journalled  # a local call whose answer was forgotten is another call
            if _differ(call.answers)
        ],
        "told as done, and not done": [call.id for call in writes if _told(call, "yes") and not lines[call.id]],
        "told as not done, and done": [call.id for call in writes if _denied(call) and lines[call.id]],
        "effects that nobody asked for": [each for each in lines if each not in known],
        "not one audit row": [
            f"{call.id}: {len(started.get(call.id, ()))}"
            for call in journalled
            if len(started.get(call.id, ())) != _rows_due(call, lines)
        ],
        "audit rows that say otherwise": [
            f"{call.id}: {_first(call)}, and its row {started[call.id][0].outcome}"
            for call in journalled
            if call.answers and call.id in started and started[call.id][0].outcome != _first(call)
        ],
        "tracebacks in the log": [str(evidence.tracebacks)] if evidence.tracebacks else [],
    }
    figures: dict[str, int | str] = {
        "calls made": len(calls),
        "accepted": sum(
            call.id in lines or call.id in started or (bool(call.answers) and not _refused(call)) for call in calls
        ),
        "answered": sum(bool(call.answers) for call in calls),
        **{f"  {outcome}": number for outcome, number in Counter(_first(c) for c in calls if c.answers).most_common()},
        "executed": sum(lines.values()),
        "replayed": sum(answer.replayed for call in calls for answer in call.answers),
        "unknown": sum(_first(call) == UNKNOWN for call in calls if call.answers),
        "never executed though unknown": sum(_first(c) == UNKNOWN and not lines[c.id] for c in writes if c.answers),
        "never sent": sum(not call.sent for call in calls),
        **{name: len(breaches[name]) for name in ("lost", "run twice", "answers to the wrong caller")},
        "audit rows expected": sum(_rows_due(call, lines) for call in journalled),
        "audit rows found": sum(len(started.get(call.id, ())) for call in journalled),
    }
    if evidence.remote_ids is not None:
        local, remote = {row.id for row in evidence.rows}, Counter(evidence.remote_ids)
        breaches["not in PostgreSQL"] = sorted(local - remote.keys())
        breaches["only in PostgreSQL"] = sorted(remote.keys() - local)
        breaches["twice in PostgreSQL"] = [each for each, times in remote.items() if times > 1]
        figures["rows in all, in the file"] = len(local)
        figures["rows in all, in PostgreSQL"] = len(evidence.remote_ids)
    return Tally(figures, breaches)


def _first(call: Call) -> str:
    return call.answers[0].outcome


def _refused(call: Call) -> bool:
    """Whether the caller was told that the call never started."""
    return all(answer.executed == "no" for answer in call.answers)


def _denied(call: Call) -> bool:
    return bool(call.answers) and _refused(call)


def _told(call: Call, executed: str) -> bool:
    return any(answer.executed == executed and answer.outcome == "ok" for answer in call.answers)


def _differ(answers: Sequence[Answer]) -> bool:
    """Whether repeats were told something else. That the result is not kept any more is no other answer."""
    return len({answer.outcome for answer in answers} - {EXPIRED}) > 1


def _rows_due(call: Call, lines: Mapping[str, int]) -> int:
    """An effect has one row, and so has an answer that an effect is possible after."""
    return int(bool(lines.get(call.id)) or (bool(call.answers) and not _refused(call)))
