"""Checks a run against the expectations of its case. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...protocol.error_codes import InvalidArgumentsError
from ...shaping import compile_filter, parse_filter
from ...tools import JsonSchema
from .eval_file import Expectation

_SHOWN_CHARS: Final = 200


class MadeCall(NamedTuple):
    """A tool call that a model made."""

    role: str
    tool: str
    arguments: Any
    """As JSON, or as text if the model did not write JSON."""
    outcome: str
    """``ok``, an error code, or the state of a call that was not made."""


class EvidenceOfRun(NamedTuple):
    """The answer and the calls of a run."""

    answer: Any
    """Text, or the data of an agent with an answer schema."""
    calls: tuple[MadeCall, ...]
    """In the order in which the models made them."""

    @property
    def text(self) -> str:
        """The answer as text."""
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer, ensure_ascii=False)


def evidence(answer: Any, steps: Sequence[Mapping[str, Any]]) -> EvidenceOfRun:
    """The evidence from the agent's answer and the steps of ``agent_runs``."""
    calls = tuple(
        MadeCall(
            step["role"], call["function"], _json(call.get("arguments", "")), call.get("error") or call.get("state", "")
        )
        for step in steps
        for call in step["calls"]
    )
    return EvidenceOfRun(answer, calls)


def failure(expected: Expectation, run: EvidenceOfRun) -> str | None:
    """Why the run does not meet the expectation; None if it does. Does not evaluate ``judge``."""
    match expected.kind:
        case "called":
            return _called(expected, run)
        case "not_called":
            calls = _matching(expected, expected.not_called, run)
            return (
                f"called {_described(expected, expected.not_called)}: {_shown(calls[0].arguments)}" if calls else None
            )
        case "order":
            return _order(expected.order or (), run)
        case _:
            return _answered(expected, run)


def _called(expected: Expectation, run: EvidenceOfRun) -> str | None:
    calls = _matching(expected, expected.called, run)
    what = _described(expected, expected.called)
    if expected.times is None:
        made = ", ".join(dict.fromkeys(call.tool for call in run.calls)) or "no tools"
        return None if calls else f"did not call {what}; it called {made}"
    return None if len(calls) == expected.times else f"called {what} {len(calls)} times, not {expected.times}"


def _matching(expected: Expectation, tool: str | None, run: EvidenceOfRun) -> list[MadeCall]:
    meets = compile_filter(parse_filter(expected.where)) if expected.where is not None else None
    return [
        call
        for call in run.calls
        if call.tool == tool
        and expected.role in {None, call.role}
        and expected.outcome in {None, call.outcome}
        and (meets is None or meets(call.arguments))
    ]


def _described(expected: Expectation, tool: str | None) -> str:
    options = {"where": expected.where, "role": expected.role, "outcome": expected.outcome}
    return " ".join([str(tool), *(f"({name} {value})" for name, value in options.items() if value is not None)])


def _order(wanted: Sequence[str], run: EvidenceOfRun) -> str | None:
    made = [call.tool for call in run.calls]
    position = 0
    for tool in wanted:
        if tool not in made[position:]:
            return f"did not call {' → '.join(wanted)} in this order; it called {' → '.join(made) or 'no tools'}"
        position = made.index(tool, position) + 1
    return None


def _answered(expected: Expectation, run: EvidenceOfRun) -> str | None:
    answer = _shown(run.answer)
    match expected.kind:
        case "contains" if expected.contains is not None and expected.contains not in run.text:
            return f"the answer does not contain {expected.contains!r}: {answer}"
        case "equals" if expected.equals != run.answer:
            return f"the answer is not {_shown(expected.equals)}: {answer}"
        case "matches" if expected.matches is not None and not re.search(expected.matches, run.text):
            return f"the answer does not match {expected.matches!r}: {answer}"
        case "schema" if expected.schema_ is not None:
            return _schema_problem(expected.schema_, run)
        case "answer" if expected.answer is not None:
            meets = compile_filter(parse_filter(expected.answer))
            return None if meets({"answer": run.answer}) else f"the answer does not meet {expected.answer!r}: {answer}"
    return None


def _schema_problem(schema: dict[str, Any], run: EvidenceOfRun) -> str | None:
    value = _json(run.answer) if isinstance(run.answer, str) else run.answer
    if not isinstance(value, dict):
        return f"the answer is not a JSON object: {_shown(run.answer)}"
    try:
        JsonSchema(schema).check("answer", value)
    except InvalidArgumentsError as error:
        return f"the answer does not match the schema: {error.message[:500]}"
    return None


def _json(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
