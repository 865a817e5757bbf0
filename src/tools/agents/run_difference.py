"""The differences between a recorded run and its replay. Pure."""

import difflib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from .recorded_run import RecordedRun, steps_of

MAX_COMPARED_LINES: Final = 2000
"""The maximum number of lines of an answer, and of calls, that are compared, because a comparison may take quadratic
time.
"""
_MAX_ARGUMENT_CHARS: Final = 300

SAME, REMOVED, ADDED = "  ", "- ", "+ "


class RunSide(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The figures of one of the two runs, without those of agents that it called."""

    state: str
    turns: int
    calls: list[dict[str, Any]]
    input_tokens: int
    output_tokens: int
    cost: dict[str, float]
    """The cost by currency, at list prices if the vendor does not state it."""
    latency_ms: float
    models: dict[str, str]
    answer: str | None = None
    error: str | None = None
    stopped_by: str | None = None


def side_of(run: RecordedRun, state: str, *, error: str | None = None, stopped_by: str | None = None) -> RunSide:
    """The figures of a run."""
    cost: defaultdict[str, float] = defaultdict(float)
    for turn in run.turns:
        if turn.cost is not None:
            cost[turn.cost.currency] += turn.cost.amount
    usages = [turn.usage for turn in run.turns if turn.usage is not None]
    return RunSide(
        state=state,
        turns=sum(not turn.summary for turn in run.turns),
        calls=[
            {"role": role, "id": call.id, "tool": call.function, "arguments": _parsed(call.arguments),
             "outcome": call.error or call.state}
            for role, call in steps_of(run.turns)
        ],
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cost={currency: round(amount, 9) for currency, amount in cost.items()},
        latency_ms=round(sum(turn.latency_ms or 0.0 for turn in run.turns), 1),
        models={} if run.snapshot is None else {name: role.model for name, role in run.snapshot.roles.items()},
        answer=run.answer,
        error=error,
        stopped_by=stopped_by or None,
    )  # fmt: skip


def difference(recorded: RunSide, replayed: RunSide) -> dict[str, Any]:
    """The differences as JSON. Lines of calls and answers begin with two spaces if both runs have them, with ``-`` if
    only the recorded run has them, and with ``+`` if only the replay has them.
    """
    calls = [_call_line(call) for call in recorded.calls], [_call_line(call) for call in replayed.calls]
    answers = (recorded.answer or "").splitlines(), (replayed.answer or "").splitlines()
    return {
        "same_calls": calls[0] == calls[1],
        "same_answer": recorded.answer == replayed.answer,
        "calls": compared(*calls),
        "answer": compared(*answers),
        "turns": replayed.turns - recorded.turns,
        "input_tokens": replayed.input_tokens - recorded.input_tokens,
        "output_tokens": replayed.output_tokens - recorded.output_tokens,
        "cost": {
            currency: round(replayed.cost.get(currency, 0.0) - recorded.cost.get(currency, 0.0), 9)
            for currency in sorted({*recorded.cost, *replayed.cost})
        },
    }


def compared(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Both texts as lines with marks. Lines beyond ``MAX_COMPARED_LINES`` are omitted, and a last line notes this."""
    lines = list(_compared(before[:MAX_COMPARED_LINES], after[:MAX_COMPARED_LINES]))
    if max(len(before), len(after)) > MAX_COMPARED_LINES:
        lines.append(f"… only the first {MAX_COMPARED_LINES:,} lines are compared")
    return lines


def _compared(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag == "equal":
            yield from (f"{SAME}{line}" for line in before[first:last])
        else:
            yield from (f"{REMOVED}{line}" for line in before[first:last])
            yield from (f"{ADDED}{line}" for line in after[new_first:new_last])


def difference_text(recorded: RunSide, replayed: RunSide, found: Mapping[str, Any]) -> str:
    """The differences as text for people."""
    rows = [
        ("state", recorded.error or recorded.state, replayed.error or replayed.state),
        ("stopped by", recorded.stopped_by or "-", replayed.stopped_by or "-"),
        ("turns", str(recorded.turns), str(replayed.turns)),
        ("calls", str(len(recorded.calls)), str(len(replayed.calls))),
        ("tokens in", f"{recorded.input_tokens:,}", f"{replayed.input_tokens:,}"),
        ("tokens out", f"{recorded.output_tokens:,}", f"{replayed.output_tokens:,}"),
        ("cost", _money(recorded.cost), _money(replayed.cost)),
        *((f"model of {role}", model, replayed.models.get(role, "-")) for role, model in recorded.models.items()),
    ]
    width = max(len(label) for label, _, _ in rows)
    lines = [f"{label.ljust(width)}  {old if old == new else f'{old} → {new}'}" for label, old, new in rows]
    for label, same in (("calls", found["same_calls"]), ("answer", found["same_answer"])):
        lines += ["", f"{label}: the same" if same else f"{label} (- recorded, + replayed):"]
        lines += [] if same else found[label]
    return "\n".join(lines)


def _call_line(call: Mapping[str, Any]) -> str:
    arguments = msgspec.json.encode(call["arguments"], order="deterministic").decode()
    shown = arguments if len(arguments) <= _MAX_ARGUMENT_CHARS else f"{arguments[:_MAX_ARGUMENT_CHARS]}…"
    return f"{call['role']}: {call['tool']} {shown} {call['outcome']}"


def _parsed(arguments: str) -> Any:
    """The arguments; their text if they are not JSON."""
    try:
        return msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        return arguments


def _money(cost: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:.6g} {currency}" for currency, amount in sorted(cost.items())) or "-"
