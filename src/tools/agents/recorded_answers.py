"""Answers tool calls of a replay from the recorded run, by tool and arguments, in the recorded order. Pure."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ...protocol.agent_record import ChildEntry
from ...protocol.error_codes import ToolError
from ...protocol.tool_call import Metadata, Timings, ToolResult
from .recorded_run import RecordedCall, RecordedRun, steps_of, stored_result

_REASONS: Final = {
    "expired": "its result is no longer stored",
    "not_made": "the recorded run did not make the call: it was refused, or a person rejected it",
    "running": "the call has not ended",
    "interrupted": "the call was interrupted, and has no result",
}


class UnansweredCall(NamedTuple):
    """A call of the replay that the recording could not answer."""

    role: str
    id: str
    tool: str
    arguments: Mapping[str, Any]
    reason: str


class RecordedAnswers:
    """The results of the recorded calls. Each is used once."""

    def __init__(self, run: RecordedRun, entries: Sequence[ChildEntry]) -> None:
        """``entries`` are the run's child calls with their results."""
        self._entries = {entry.path: entry for entry in entries}
        self._waiting: defaultdict[tuple[str, bytes], deque[tuple[str, RecordedCall]]] = defaultdict(deque)
        self._unusable: dict[tuple[str, bytes], str] = {}
        kinds = (
            {}
            if run.snapshot is None
            else {
                (role, function.name): function.kind
                for role, offered in run.snapshot.roles.items()
                for function in offered.functions
            }
        )
        for role, call in steps_of(run.turns):
            kind = kinds.get((role, call.function))
            arguments = _arguments(call.arguments)
            if kind not in {"tool", "agent"} or arguments is None:
                continue  # the engine answers these: delegations, questions, unknown functions, invalid JSON
            key = _key(call.function, {"prompt": arguments.get("prompt")} if kind == "agent" else arguments)
            if call.state in _REASONS:
                self._unusable[key] = _REASONS[call.state]
            else:
                self._waiting[key].append((role, call))
        self.unanswered: list[UnansweredCall] = []

    def has(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a recorded call of this tool with these arguments is left."""
        return bool(self._waiting.get(_key(tool, arguments)))

    def take(self, role: str, call_id: str, tool: str, arguments: Mapping[str, Any]) -> ToolResult | None:
        """The result of the next recorded call of this tool with these arguments, preferably of the same role. None if
        there is no such call; the call is then added to ``unanswered``.
        """
        key = _key(tool, arguments)
        waiting = self._waiting[key]
        chosen = next((each for each in waiting if each[0] == role), waiting[0] if waiting else None)
        if chosen is None:
            reason = self._unusable.get(key, "the recorded run has no further call of this tool with these arguments")
            self.unanswered.append(UnansweredCall(role, call_id, tool, arguments, reason))
            return None
        waiting.remove(chosen)
        return stored_result(self._entries[chosen[1].id])

    @property
    def unused(self) -> list[tuple[str, RecordedCall]]:
        """The recorded calls that the replay did not make, with their roles."""
        return [call for waiting in self._waiting.values() for call in waiting]


def not_recorded(tool: str, reason: str) -> ToolResult:
    """The result for the model if the recording cannot answer a call."""
    message = f"This is a replay, and {tool} was not run: {reason}. Use the results that you have, or answer."
    error = ToolError("NOT_FOUND", message, "no", retryable=False)
    return ToolResult(Metadata(0.0, Timings()), error=error)


def _arguments(written: str) -> dict[str, Any] | None:
    try:
        arguments = msgspec.json.decode(written or "{}")
    except (msgspec.DecodeError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _key(tool: str, arguments: Mapping[str, Any]) -> tuple[str, bytes]:
    return tool, msgspec.json.encode(arguments, order="deterministic")
