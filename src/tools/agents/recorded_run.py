"""A recorded run of an agent: its turns and tool calls, from the entries of its child calls. Pure.

It contains only the content that the journal still has. If a turn's result has expired, its text and its calls are
unknown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from ...protocol.agent_record import ChildEntry
from ...protocol.tool_call import Cost, ToolResult, Usage, decode_result
from .agent_definition import Agent
from .agent_messages import TurnAnswer
from .agent_run import RoleAnswer
from .agent_snapshot import RunSnapshot

_TURN: Final = re.compile(r"(?:t|(?:[A-Za-z][A-Za-z0-9_-]*\.)*s)([0-9]+)(?:#[0-9]+)?")
"""Matches the name of a model turn, of a role or of an agent's code, in any branch."""
_SUMMARY: Final = re.compile(r"summary\.[0-9]+(?:#[0-9]+)?")
_CALL: Final = re.compile(r"t([0-9]+)\.([0-9]+)")
_ITERATION: Final = re.compile(r"i[0-9]+\.")

_NAMES: Final = {"agent_turn": _TURN, "agent_summary": _SUMMARY}

StepState = Literal["ok", "failed", "running", "interrupted", "expired", "not_made"]
"""``expired``: the step ended, and its result is no longer stored. ``not_made``: the call was refused before it ran, or
a person rejected or answered it.
"""


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call that a model wanted, and its outcome."""

    id: str
    """The path below the run."""
    function: str
    arguments: str
    """The arguments as the model wrote them."""
    state: StepState
    error: str | None = None
    """The error's code."""
    result_bytes: int = 0


class RecordedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model turn."""

    id: str
    """The path below the run."""
    role: str
    state: StepState
    model: str = ""
    text: str = ""
    reasoning: str = ""
    finish_reason: str = ""
    calls: tuple[RecordedCall, ...] = ()
    attempts: int = 1
    usage: Usage | None = None
    cost: Cost | None = None
    latency_ms: float | None = None
    error: str | None = None
    summary: bool = False
    """Whether the turn summarized the role's oldest messages. Such a turn is not counted."""


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded run."""

    snapshot: RunSnapshot | None
    """The run's snapshot; None if it is no longer stored."""
    turns: tuple[RecordedTurn, ...]
    """The turns in the order in which they began."""
    answer: str | None
    """The run's answer; None if there is none, or it is no longer stored."""
    nested: tuple[str, ...] = ()
    """The paths of calls that are runs of other agents."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The paths of the steps whose content is no longer stored."""
        turns = [turn.id for turn in self.turns if turn.state == "expired"]
        calls = [call.id for turn in self.turns for call in turn.calls if call.state == "expired"]
        return (*(() if self.snapshot else ("snapshot",)), *turns, *calls)


def read_run(entries: Sequence[ChildEntry], snapshot: RunSnapshot | None = None) -> RecordedRun:
    """Returns the run that consists of these child calls. Pass ``snapshot`` if the child calls do not include it."""
    by_path = {entry.path: entry for entry in entries}
    snapshot = snapshot or _content(by_path.get("snapshot"), RunSnapshot)
    nested = tuple(
        parent
        for entry in entries
        if entry.tool == "agent_snapshot" and (parent := entry.path.rpartition("/")[0]) and parent in by_path
    )
    roles = _Roles(snapshot, by_path)
    turns: dict[str, RecordedTurn] = {}
    for entry in entries:
        path, _, name = entry.path.rpartition("/")
        names = _NAMES.get(entry.tool)
        if names is None or not names.fullmatch(name) or not roles.has(path):
            continue
        key = f"{path}/{name.partition('#')[0]}".lstrip("/")
        earlier = turns.get(key)
        turn = _turn(entry, key, roles.name(path), by_path, 1 + (earlier.attempts if earlier else 0))
        turns[key] = msgspec.structs.replace(turn, summary=entry.tool == "agent_summary")
    answer = None if snapshot is None else _answer(snapshot, turns, by_path)
    return RecordedRun(snapshot=snapshot, turns=tuple(turns.values()), answer=answer, nested=nested)


class _Roles:
    """Finds the role that runs below a path."""

    def __init__(self, snapshot: RunSnapshot | None, by_path: Mapping[str, ChildEntry]) -> None:
        self._snapshot = snapshot
        self._by_path = by_path

    def has(self, path: str) -> bool:
        """Whether turns below the path belong to a role of this run, not to another agent's run."""
        entry = self._by_path.get(path)
        return path == "" or (entry is not None and entry.tool == "agent_role" and self.has(path.rpartition("/")[0]))

    def name(self, path: str) -> str:
        parent, _, name = path.rpartition("/")
        if path == "":  # a turn of an agent's code, whose role is not known
            return (
                ""
                if self._snapshot is None or self._snapshot.code
                else leader_of(Agent.model_validate(self._snapshot.agent))
            )
        call = _CALL.fullmatch(name)
        if call is None:
            return _ITERATION.sub("", name, count=1)
        answer = _content(self._by_path.get(f"{parent}/t{call[1]}".lstrip("/")), TurnAnswer)
        if answer is None or self._snapshot is None or int(call[2]) >= len(answer.calls):
            return name
        functions = self._snapshot.roles[self.name(parent)].functions
        wanted = answer.calls[int(call[2])].name
        return next((function.target for function in functions if function.name == wanted), name)


def leader_of(agent: Agent) -> str:
    """The role whose turns are in the agent's own call; in flows without such a role, the first role."""
    return agent.coordinator_role or agent.hub_role or agent.roles[0].name


def stored_result(entry: ChildEntry | None) -> ToolResult | None:
    """The result of a child call; None if it is not stored."""
    return None if entry is None or entry.result is None else decode_result(entry.result)


def _content(entry: ChildEntry | None, type_: type[Any]) -> Any:
    result = stored_result(entry)
    return None if result is None or result.error is not None else msgspec.convert(result.structured, type_)


def _turn(entry: ChildEntry, key: str, role: str, by_path: Mapping[str, ChildEntry], attempts: int) -> RecordedTurn:
    result = stored_result(entry)
    if result is None:
        return RecordedTurn(id=key, role=role, state=_state(entry), attempts=attempts)
    metadata = result.metadata
    if result.error is not None:
        return RecordedTurn(id=key, role=role, state="failed", error=result.error.code, attempts=attempts)
    answer = msgspec.convert(result.structured, TurnAnswer)
    calls = tuple(
        _call(f"{key}.{index}", call.name, call.arguments, by_path.get(f"{key}.{index}"))
        for index, call in enumerate(answer.calls)
    )
    return RecordedTurn(
        id=key,
        role=role,
        state="ok",
        model=answer.model,
        text=answer.text,
        reasoning=answer.reasoning,
        finish_reason=answer.finish_reason,
        calls=calls,
        attempts=attempts,
        usage=metadata.usage,
        cost=metadata.cost,
        latency_ms=metadata.latency_ms,
    )


def _call(path: str, function: str, arguments: str, entry: ChildEntry | None) -> RecordedCall:
    if entry is None:
        return RecordedCall(id=path, function=function, arguments=arguments, state="not_made")
    return RecordedCall(
        id=path,
        function=function,
        arguments=arguments,
        state="failed" if entry.error else _state(entry),
        error=entry.error,
        result_bytes=entry.result_bytes,
    )


def _state(entry: ChildEntry) -> StepState:
    match entry.state:
        case "started":
            return "running"
        case "done":
            return "ok"
        case other:
            return other


def _answer(snapshot: RunSnapshot, turns: Mapping[str, RecordedTurn], by_path: Mapping[str, ChildEntry]) -> str | None:
    """The answer of the role that answers last, or the blocks of a parallel flow."""
    agent = Agent.model_validate(snapshot.agent)
    own = {path: answer for path, entry in by_path.items() if (answer := _role_answer(path, entry)) is not None}
    match agent.execution_type:
        case "sequential" | "loop":
            return list(own.values())[-1].text if own else None
        case "parallel" if agent.aggregator_role:
            aggregated = own.get(agent.aggregator_role)
            return aggregated.text if aggregated else None
        case "custom":  # the agent's code makes it from the results of its steps
            return None
        case "parallel":
            return "\n\n".join(
                f"=== {role.name} ===\n{own[role.name].text}" for role in agent.roles if role.name in own
            )
        case _:
            spokes = {role.name for role in agent.spokes_of(agent.role(leader_of(agent)))}
            transferred = [own[name] for name in own if name in spokes]
            if transferred:
                return transferred[-1].text
            last = [turn for path, turn in turns.items() if "/" not in path and not turn.summary][-1:]
            return last[0].text if last and last[0].state == "ok" and not last[0].calls else None


def _role_answer(path: str, entry: ChildEntry) -> RoleAnswer | None:
    """The answer of a role that the flow itself ran, that is, to which no other role delegated."""
    if entry.tool != "agent_role" or "/" in path or _CALL.fullmatch(path):
        return None
    answer: RoleAnswer | None = _content(entry, RoleAnswer)
    return answer


def run_data(run: RecordedRun, *, shown: bool) -> dict[str, Any]:
    """The run as JSON. Texts and arguments are omitted unless ``shown`` is true."""
    data: dict[str, Any] = {
        "answer": run.answer if shown else None,
        "steps": [_step(turn, shown=shown) for turn in run.turns],
    }
    if run.snapshot is not None:
        data["flow"] = Agent.model_validate(run.snapshot.agent).execution_type
        data["models"] = {name: role.model for name, role in run.snapshot.roles.items()}
        data |= {"prompt": run.snapshot.request} if shown and run.snapshot.request else {}
    if run.nested:
        data["nested_runs"] = list(run.nested)
    if run.missing:
        data["not_kept"] = list(run.missing)
    return data


def _step(turn: RecordedTurn, *, shown: bool) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(turn)
    calls = data.setdefault("calls", [])
    if not shown:
        for field in ("text", "reasoning"):
            data.pop(field, None)
        for call in calls:
            call.pop("arguments", None)
    return data


def steps_of(turns: Iterable[RecordedTurn]) -> list[tuple[str, RecordedCall]]:
    """The calls of all turns with their roles, in the order in which the models made them."""
    return [(turn.role, call) for turn in turns for call in turn.calls]
