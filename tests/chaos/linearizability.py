"""Decides whether a recorded history of calls has a sequential explanation. It shares no code with the daemon.

A history is what was observed from outside, with times of one clock: when clients sent calls, which answers they
received and when, which state of a call they saw, when the effects of executions appeared, and the audit
rows. The daemons promise that all of this looks as if each observation had happened at one instant between its begin
and its end, and each call had been one object that behaves as ``apply`` says: it is executed at most once, it has one
outcome, and every reader sees its present state. The check searches for such an order (Wing and Gong, 1993; with the
memory of Lowe, 2017). An order of all calls exists if each call has one (Herlihy and Wing, 1990), so each
is judged alone.

``python -m tests.chaos.linearizability FILE`` judges a recorded history.
"""

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal

Kind = Literal["asked", "executed", "answered", "looked up", "recorded", "waited"]
"""``asked``: a client has sent the call. ``executed``: its effect appeared. ``answered``: the client has an answer.
``looked up``: somebody saw its state. ``recorded``: its audit row, which is read after the run. ``waited``: the
client still waited for the first answer at the end of the run, when everything worked again."""

OPEN: Final = "open"
"""The outcome of a call that has not ended, as ``looked up`` reports it."""
REFUSED: Final = "SERVICE_UNAVAILABLE"
"""With ``executed`` no: a node refused the call before it accepted it. The call may be sent again, and run."""
EXPIRED: Final = "RESULT_EXPIRED"
"""The call has ended and its result is deleted."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One observation. Times are seconds of one monotonic clock; ``begin`` <= ``end``."""

    call: str
    """Identifies the session and the request id."""
    kind: Kind
    begin: float
    end: float
    outcome: str | None = None
    """``ok``, or the code of an error."""
    executed: str | None = None
    """``yes``, ``no`` or ``maybe``, if the observation says so."""
    content: str | None = None
    """Of ``asked``: what the call sent. Of a successful answer: what it says the call had sent."""

    def __str__(self) -> str:
        said = " ".join(each for each in (self.outcome, self.executed, self.content) if each)
        return f"{self.begin:.3f}..{self.end:.3f} {self.kind}{': ' if said else ''}{said}"


@dataclass(frozen=True, slots=True)
class State:
    """A call at one instant."""

    sent: str | None = None
    """What it was called with; None if it was not sent."""
    executed: bool = False
    outcome: str | None = None
    """None until the call has ended."""
    certainty: str | None = None
    """``executed`` of its outcome, as far as anybody knows."""
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """A call whose observations no sequential order explains."""

    call: str
    operation: Operation
    """In the order of their ends, the first observation that cannot be explained."""
    before: Sequence[Operation]
    """The observations of the call that ended before, and those that had begun."""

    def __str__(self) -> str:
        lines = "\n".join(f"    {each}" for each in self.before)
        return f"{self.call}: no order explains\n    {self.operation}\n  after\n{lines}"


def check(operations: Iterable[Operation]) -> list[Violation]:
    """Returns the calls of a history that have no sequential explanation, each with its first such observation."""
    by_call: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        by_call[operation.call].append(operation)
    judged = (_judge(call, _without_repeats(history)) for call, history in by_call.items())
    return [violation for violation in judged if violation is not None]


def apply(state: State, operation: Operation) -> State | None:
    """Returns the state of a call after an observation; None if a correct service does not permit it in this state."""
    match operation.kind:
        case "asked":
            return replace(state, sent=operation.content) if state.sent in {None, operation.content} else None
        case "executed":
            # A node that was declared dead may have been within the tool: the outcome is unknown, and the effect late.
            late = state.outcome is not None and state.certainty in {"yes", "no"}
            return None if state.sent is None or state.executed or late else replace(state, executed=True)
        case "waited":
            return None
        case _:
            return _observe(state, operation)


def _observe(state: State, operation: Operation) -> State | None:
    """A reader learns the state of a call. If it had no outcome yet, it may have got one just before."""
    if state.sent is None and operation.kind != "recorded":
        return None
    if operation.outcome == OPEN or (operation.outcome == REFUSED and operation.executed == "no"):
        refused = operation.outcome != OPEN
        return state if state.outcome is None and not (refused and state.executed) else None
    if operation.outcome == EXPIRED:
        return replace(state, expired=True) if state.outcome is not None else None
    if state.outcome not in {None, operation.outcome} or (state.expired and operation.kind == "answered"):
        return None
    certainty = operation.executed or state.certainty
    if state.certainty not in {None, certainty}:
        return None
    impossible = {"yes": not state.executed, "no": state.executed}
    if certainty is not None and impossible.get(certainty):
        return None
    if operation.content not in {None, state.sent}:
        return None  # the answer of another call
    return replace(state, outcome=operation.outcome, certainty=certainty)


# --- the search ------------------------------------------------------------------------------------------------------


def _judge(call: str, history: Sequence[Operation]) -> Violation | None:
    if _explained(history, len(history)):
        return None
    for count in range(1, len(history) + 1):
        until = history[count - 1].end
        known = [each for each in history if each.begin <= until]
        if not _explained(known, count):
            return Violation(call, history[count - 1], [each for each in known if each is not history[count - 1]])
    raise AssertionError("the whole history has an explanation after all")


def _explained(history: Sequence[Operation], count: int) -> bool:
    """Whether an order of the first ``count`` operations exists, in which later ones may take part too.

    Operations are sorted by their ends. One comes before another in each order if it ended before the other began.
    """
    required = (1 << count) - 1
    seen = {(0, State())}
    open_branches = [(0, State())]
    while open_branches:
        done, state = open_branches.pop()
        if done & required == required:
            return True
        # An operation can be the next one if no other one that is still missing ended before it began.
        ends = (each.end for number, each in enumerate(history) if not done >> number & 1)
        horizon = next(ends)
        for number in reversed(range(len(history))):
            operation = history[number]
            if done >> number & 1 or operation.begin > horizon:
                continue
            after = apply(state, operation)
            branch = (done | 1 << number, after)
            if after is not None and branch not in seen:
                seen.add((branch[0], after))
                open_branches.append((branch[0], after))
    return False


def _without_repeats(history: Sequence[Operation]) -> list[Operation]:
    """Sorted by end, without the observations that another one implies: the same one, seen within its time."""
    kept: list[Operation] = []
    for operation in sorted(history, key=lambda each: (each.end, -each.begin)):
        if operation.kind == "executed" or not any(_implies(each, operation) for each in kept):
            kept.append(operation)
    return kept


def _implies(inner: Operation, outer: Operation) -> bool:
    return (
        outer.begin <= inner.begin
        and inner.end <= outer.end
        and (inner.kind, inner.outcome, inner.executed, inner.content)
        == (outer.kind, outer.outcome, outer.executed, outer.content)
    )


# --- recorded histories ----------------------------------------------------------------------------------------------


def save(path: Path, operations: Iterable[Operation]) -> None:
    """Writes a history, one observation per line."""
    with path.open("w", encoding="utf-8") as file:
        for operation in operations:
            fields = {name: value for name, value in asdict(operation).items() if value is not None}
            file.write(json.dumps(fields | {"end": None if math.isinf(operation.end) else operation.end}) + "\n")


def load(path: Path) -> Iterator[Operation]:
    """Reads a history."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            fields = json.loads(line)
            yield Operation(**fields | {"end": math.inf if fields["end"] is None else fields["end"]})


def main(path: str) -> int:
    """Judge a recorded history, and name the calls without an explanation."""
    operations = list(load(Path(path)))
    violations = check(operations)
    print(*violations, f"{len(operations)} observations, {len(violations)} calls without an explanation", sep="\n")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
