"""The plan of an architecture, the prompts for its agents, and the parsing of their answers. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

Pattern = Literal["sequential", "parallel", "loop", "coordinator", "hub-spoke", "hierarchical"]
AGGREGATOR: Final = "aggregator"
"""In a parallel architecture, the role of the agent that combines the answers of the others."""
_FENCE: Final = re.compile(r"\A\s*```[a-z]*\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


class PlanMember(msgspec.Struct, frozen=True):
    """An agent of an architecture."""

    name: str
    """The agent's name in the answer and in the prompts of other agents; unique in the architecture."""
    tool: str
    description: str
    role: str
    below: tuple[int, ...] = ()
    """The indexes of the agents to which it may give tasks."""


class ArchitecturePlan(msgspec.Struct, frozen=True):
    """The plan of an architecture, as a call runs it."""

    name: str
    pattern: Pattern
    members: tuple[PlanMember, ...]
    timeout_s: float
    retries: int
    max_iterations: int
    stop_when: str | None = None

    def leader(self) -> int:
        """The index of the agent that answers and gives tasks to others."""
        below = {place for member in self.members for place in member.below}
        roots = [place for place in range(len(self.members)) if place not in below]
        return next((place for place in roots if self.members[place].below), 0)


class MemberOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of an agent."""

    status: Literal["success", "error", "skipped"]
    result: str | msgspec.UnsetType = msgspec.UNSET
    error: str | msgspec.UnsetType = msgspec.UNSET
    effect_unknown: bool = False
    """Whether the agent failed but may have had an effect."""

    @property
    def text(self) -> str:
        """The result, or a text with the error for other agents."""
        return self.result if isinstance(self.result, str) else f"[failed: {self.error}]"


def planning_prompt(query: str, members: Sequence[PlanMember]) -> str:
    """Asks an agent to give tasks to others."""
    return (
        f"{query}\n\n---\nThese agents can work for you:\n{_listed(members)}\n\n"
        'To use some of them, answer with nothing but JSON: {"tasks": [{"agent": "NAME", "task": "TEXT"}]}. They work '
        "at the same time, see only their task, and you get their answers. If you need none, answer the request itself."
    )


def combining_prompt(query: str, answers: Sequence[tuple[str, MemberOutcome]]) -> str:
    """Asks an agent to answer from the answers of others."""
    return f"{query}\n\n---\nThe answers of other agents:\n\n{blocks(answers)}\n\nNow answer the request."


def routing_prompt(query: str, members: Sequence[PlanMember]) -> str:
    """Asks an agent to choose the agent that answers."""
    return (
        f"{query}\n\n---\nOne of these agents can answer instead of you:\n{_listed(members)}\n\n"
        'To let one answer, answer with nothing but JSON: {"agent": "NAME"}. If none fits, answer the request itself.'
    )


def blocks(answers: Sequence[tuple[str, MemberOutcome]]) -> str:
    """The answers of several agents as one text."""
    return "\n\n".join(f"=== {name} ===\n{outcome.text}" for name, outcome in answers)


def tasks_in(answer: str) -> list[tuple[str, str]] | None:
    """The tasks that an answer to ``planning_prompt`` gives, as agent and text; None if it answers the request."""
    table = _json_of(answer)
    tasks = None if table is None else table.get("tasks")
    if not isinstance(tasks, list):
        return None
    return [(str(task.get("agent")), str(task.get("task"))) for task in tasks if isinstance(task, dict)]


def choice_in(answer: str) -> str | None:
    """The agent that an answer to ``routing_prompt`` names; None if it answers the request."""
    table = _json_of(answer)
    chosen = None if table is None or set(table) != {"agent"} else table["agent"]
    return chosen if isinstance(chosen, str) else None


def _json_of(answer: str) -> Mapping[str, Any] | None:
    fenced = _FENCE.match(answer)
    try:
        table = msgspec.json.decode(fenced[1] if fenced else answer)
    except (msgspec.DecodeError, RecursionError):
        return None
    return table if isinstance(table, dict) else None


def _listed(members: Sequence[PlanMember]) -> str:
    return "\n".join(f"- {member.name}: {member.description}" for member in members)
