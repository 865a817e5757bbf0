"""The verdict of a fault run: a pure function from observations to figures and broken promises.

The promises, and the evidence for each:

- every call has a terminal answer, from any daemon process: the answers that its caller received;
- no effect exists twice, every reported effect exists, and no denied effect does: the lines of the effect log;
- an answer belongs to its caller: the text in it;
- one audit row per started call, with the outcome that the caller received: the rows in SQLite. If the full disk
  refused the end of a call and the daemon died before it had space, its row says OUTCOME_UNKNOWN, as documented;
- every row is in PostgreSQL once: the ids there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

WRITES: Final = "sim_effect"
"""The tool whose effects are counted; other tools write no line."""
NESTED: Final = "execute_pipeline"
"""A pipeline whose one step is a batch of one write: it writes one line too."""
DETACHED: Final = "detached"
"""Not a tool: a detached batch of one write. It writes one line; only the linearizability check judges it."""
LOCAL: Final = "echo"
"""A tool without a journal: after a crash its row may be missing, and it may run again."""
UNKNOWN: Final = "OUTCOME_UNKNOWN"
EXPIRED: Final = "RESULT_EXPIRED"


@dataclass(frozen=True, slots=True)
class Answer:
    """A terminal answer that a caller received."""

    outcome: str
    """``ok``, or the error's code."""
    executed: str
    """``yes`` if the outcome is ok; ``maybe`` if a pipeline reports that its step did not succeed."""
    own: bool
    """Whether it is an error or contains the text that this caller sent."""
    replayed: bool = False
    asked_at: float = 0.0
    """When the caller had asked for it at the latest, in seconds of the monotonic clock."""
    at: float = 0.0
    """When it arrived."""


@dataclass(slots=True)
class Call:
    """One call, sent once or more under an id that is unique in the run."""

    id: str
    tool: str
    answers: list[Answer] = field(default_factory=list)
    """The first answers the call; later ones answer repeats, or were redelivered."""
    lost: str | None = None
    """Why its caller stopped waiting for an answer."""
    sent: bool = True
    """Whether it may have left the client; a call that was never sent is not lost."""
    asked_at: float = 0.0
    """When it was made, in seconds of the monotonic clock."""
    looks: list[Answer] = field(default_factory=list)
    """The states that others saw: only detached calls have some."""
    given_up: bool = False
    """Whether its caller cannot learn its outcome, and does not wait for it."""


@dataclass(frozen=True, slots=True)
class Row:
    """The columns of an audit row that the verdict uses."""

    id: str
    request_id: str
    outcome: str
    executed: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The findings after the run."""

    lines: Sequence[str]
    """The lines of the effect log: the ids of the calls that wrote them."""
    rows: Sequence[Row]
    """The audit rows in SQLite."""
    remote_ids: Sequence[str] | None
    """The ids of the rows in PostgreSQL; None if the run had no PostgreSQL."""
    tracebacks: int = 0
    """The number of tracebacks in the daemon's log."""
    unpersisted: frozenset[str] = frozenset()
    """The ids of calls whose answer was sent although the disk refused it, by the daemon's log."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Figures by name, in reading order, and for each promise the ids of the calls or rows that broke it."""

    figures: Mapping[str, int | str]
    breaches: Mapping[str, Sequence[str]]

    @property
    def kept(self) -> bool:
        return not any(self.breaches.values())


def tally(calls: Sequence[Call], evidence: Evidence) -> Tally:
    """Compares what callers received with the evidence."""
    lines = Counter(evidence.lines)
    # Rejected calls (such as SERVICE_UNAVAILABLE from a daemon that shuts down) have rows too, but did not start; their
    # id may be used again. Repeats whose answer has expired have rows as well.
    started: dict[str, list[Row]] = {}
    for row in evidence.rows:
        if row.executed != "no" and row.outcome != EXPIRED:
            started.setdefault(row.request_id, []).append(row)
    known = {call.id for call in calls}
    journalled = [call for call in calls if call.tool != LOCAL]
    writes = [call for call in calls if call.tool in {WRITES, NESTED}]
    breaches = {
        "lost": [
            f"{call.id}: {EXPIRED if call.answers else call.lost}"
            for call in calls
            if (call.sent and not call.answers) or (call.answers and _first(call) == EXPIRED)
        ],
        "run twice": [each for each, times in lines.items() if times > 1],
        "answers to the wrong caller": [call.id for call in calls if not all(answer.own for answer in call.answers)],
        "repeats with a different answer": [
            f"{call.id}: {', '.join(answer.outcome for answer in call.answers)}"
            for call in journalled  # a local call whose answer was acknowledged is a new call
            if _differ(call.answers, may_be_unknown=call.id in evidence.unpersisted)
        ],
        "reported done, without an effect": [
            call.id for call in writes if _reported(call, "yes") and not lines[call.id]
        ],
        "reported not done, with an effect": [c.id for c in writes if _denied(c) and lines[c.id]],
        "effects without a call": [each for each in lines if each not in known],
        "not exactly one audit row": [
            f"{call.id}: {len(started.get(call.id, ()))}"
            for call in journalled
            if len(started.get(call.id, ())) != _rows_due(call, lines)
        ],
        "audit rows with another outcome": [
            f"{call.id}: {_first(call)}, but its row {started[call.id][0].outcome}"
            for call in journalled
            if call.answers
            and call.id in started
            and started[call.id][0].outcome != _first(call)
            and not (call.id in evidence.unpersisted and started[call.id][0].outcome == UNKNOWN)
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
        "unknown without an effect": sum(_first(c) == UNKNOWN and not lines[c.id] for c in writes if c.answers),
        "never sent": sum(not call.sent for call in calls),
        **{name: len(breaches[name]) for name in ("lost", "run twice", "answers to the wrong caller")},
        "audit rows expected": sum(_rows_due(call, lines) for call in journalled),
        "audit rows found": sum(len(started.get(call.id, ())) for call in journalled),
    }
    if evidence.remote_ids is not None:
        local, remote = {row.id for row in evidence.rows}, Counter(evidence.remote_ids)
        breaches["missing in PostgreSQL"] = sorted(local - remote.keys())
        breaches["only in PostgreSQL"] = sorted(remote.keys() - local)
        breaches["twice in PostgreSQL"] = [each for each, times in remote.items() if times > 1]
        figures["rows in SQLite"] = len(local)
        figures["rows in PostgreSQL"] = len(evidence.remote_ids)
    return Tally(figures, breaches)


def _first(call: Call) -> str:
    return call.answers[0].outcome


def _refused(call: Call) -> bool:
    """Whether every answer says that the call never started."""
    return all(answer.executed == "no" for answer in call.answers)


def _denied(call: Call) -> bool:
    return bool(call.answers) and _refused(call)


def _reported(call: Call, executed: str) -> bool:
    return any(answer.executed == executed and answer.outcome == "ok" for answer in call.answers)


def _differ(answers: Sequence[Answer], *, may_be_unknown: bool) -> bool:
    """Whether repeats got another outcome. An expired result does not count as one, nor does an unknown outcome after
    an answer that the disk refused, if the daemon was killed before it could be written.
    """
    lost = {EXPIRED, UNKNOWN} if may_be_unknown else {EXPIRED}
    return len({answer.outcome for answer in answers} - lost) > 1


def _rows_due(call: Call, lines: Mapping[str, int]) -> int:
    """One row for an effect, or for an answer that admits an effect."""
    return int(bool(lines.get(call.id)) or (bool(call.answers) and not _refused(call)))
