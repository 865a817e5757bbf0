"""The definition of an agent: roles, prompts, models, tools, flow and limits. docs/agents.md describes every field.

The models here check everything that needs no daemon; ``agent_snapshot`` checks tools, models and prompts.
"""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ...providers import Depth
from ..completions import MAX_FALLBACKS
from ..money_amounts import Amounts
from ..setting_messages import condition_text
from .agent_skill import AgentSkills
from .compaction_settings import Compaction, CompactionSettings

ExecutionType = Literal[
    "single", "sequential", "parallel", "loop", "coordinator", "hub-spoke", "hierarchical", "custom"
]
"""The order in which roles run, and which role's answer becomes the agent's."""

MAX_ROLES: Final = 32
MAX_TURNS: Final = 50
"""The maximum number of turns of one role, as in toold's predecessor."""
MAX_PROMPT_CHARS: Final = 200_000
_ROLE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
"""The maximum length of a role's name, which is part of the ids of its child calls; their parts have at most 80
characters.
"""


def _role_name(name: str) -> str:
    if not _ROLE_NAME.fullmatch(name):
        raise PydanticCustomError("role_name", "must be a letter and up to 39 more of A-Za-z0-9_-")
    if _RESERVED_NAME.fullmatch(name):
        raise PydanticCustomError("role_name", "must not be snapshot, or t or i with a number: calls have these names")
    return name


RoleName = Annotated[str, AfterValidator(_role_name)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PROMPT_CHARS)]
Variable = str | int | float | bool

_RESERVED_NAME: Final = re.compile(r"snapshot|[ti][0-9]+")
_CONFIG: Final = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)


class ToolGrant(BaseModel):
    """Tools that a role may call: one tool by its name, or the matching tools of a source."""

    model_config = _CONFIG

    name: Name | None = None
    """A tool's name, or a pattern with ``*``."""
    source: Name | None = None
    """All tools of this source, such as an MCP server."""
    include: tuple[Name, ...] = ()
    """Only the tools of the source that match one of these patterns; all tools if empty."""
    exclude: tuple[Name, ...] = ()
    """Tools that match one of these patterns are excluded."""
    active: bool = True
    """Whether the grant is in effect."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.name is None) == (self.source is None):
            raise PydanticCustomError("grant", "needs either name (a tool) or source (a source of tools)")
        if self.name is not None and (self.include or self.exclude):
            raise PydanticCustomError("grant", "has include or exclude, which need source")
        return self

    def matches(self, tool: str, source: str) -> bool:
        """Whether the grant includes the tool with this name from this source."""
        if self.name is not None:
            return fnmatchcase(tool, self.name)
        if source != self.source or (self.include and not any(fnmatchcase(tool, each) for each in self.include)):
            return False
        return not any(fnmatchcase(tool, each) for each in self.exclude)

    def __str__(self) -> str:
        return self.name or f"{self.source}: {', '.join(self.include) or '*'}"


class Role(BaseModel):
    """One member of an agent: a prompt, a model, and the tools that it may call."""

    model_config = _CONFIG

    name: RoleName
    description: str = ""
    """A description of the role's work, for the roles that delegate to it."""
    prompt: Prompt | None = None
    """The system prompt. Without one, ``prompt_ref`` is looked up."""
    prompt_ref: Name | None = None
    prompt_tag: Name | None = None
    """The tag of the prompt's version at Phoenix; None: the tag in the settings."""
    model: Name | None = None
    """A model's id or alias; None: the prompt's model, else the agent's, else the default model."""
    tools: tuple[ToolGrant, ...] = ()
    knowledge: tuple[Name, ...] = ()
    """Collections of documents that the role may search, each with the tool ``knowledge_NAME``."""
    optional_knowledge: tuple[Name, ...] = ()
    """Further collections. If the session's toolset lacks the tool of one, this is a warning, not an error, because a
    registry does not know which collections this daemon has.
    """
    agents: tuple[Name, ...] = ()
    """Other agents that the role may call."""
    workers: tuple[RoleName, ...] = ()
    """In a hierarchical agent: the roles to which this role may delegate."""
    approve: tuple[Name, ...] | Literal["destructive"] = ()
    """Tools, by name or pattern, that run only after a person has approved the call."""
    ask: bool = False
    """Whether the role may ask a person a question."""
    max_turns: int = Field(default=10, ge=1, le=MAX_TURNS)
    parallel_tools: int = Field(default=5, ge=1, le=16)
    """The maximum number of tool calls of one turn that run concurrently."""
    answer_schema: dict[str, Any] | None = None
    """A JSON Schema that the answer must match."""
    answer_retries: int = Field(default=2, ge=0, le=5)
    """Further turns to correct an answer that does not match."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    thinking: bool | Depth | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    """The maximum tokens of one turn's answer."""
    compaction: Compaction | None = None
    """How the role's messages are shortened; None: as in the agent's settings."""
    metadata: dict[str, Variable] = {}
    """The variables of the prompt."""

    @model_validator(mode="after")
    def _check_tag(self) -> Self:
        if self.prompt_tag is not None and self.prompt_ref is None:
            raise _of("prompt_tag", "needs prompt_ref, the name of the prompt that has the tag")
        return self

    def needs_approval(self, tool: str, *, destructive: bool) -> bool:
        """Whether a person must approve calls of this tool."""
        if self.approve == "destructive":
            return destructive
        return any(fnmatchcase(tool, pattern) for pattern in self.approve)


class Agent(BaseModel):
    """A hosted agent: a tool whose steps models choose."""

    model_config = _CONFIG

    name: Name
    description: Annotated[str, StringConstraints(min_length=1, max_length=4000)]
    execution_type: ExecutionType = "single"
    roles: Annotated[tuple[Role, ...], Field(min_length=1, max_length=MAX_ROLES)]
    chain_output: bool = True
    """Sequential and loop: whether a role gets the previous role's answer, or the request."""
    parallel_roles: tuple[RoleName, ...] = ()
    """Parallel: the roles that run concurrently; if empty, all roles except the aggregator."""
    aggregator_role: RoleName | None = None
    """Parallel: the role that combines the answers of the others."""
    coordinator_role: RoleName | None = None
    """Coordinator and hierarchical: the role that answers, and delegates to others."""
    worker_roles: tuple[RoleName, ...] = ()
    """Coordinator: the roles to which the coordinator delegates; all others if empty."""
    hub_role: RoleName | None = None
    """Hub-spoke: the role that chooses which role answers."""
    spoke_roles: tuple[RoleName, ...] = ()
    """Hub-spoke: the roles from which the hub chooses; all others if empty."""
    max_iterations: int = Field(default=5, ge=1, le=100)
    """Loop: the maximum number of iterations."""
    custom: Name | None = None
    """Custom: the entry point of the code that runs the roles (docs/custom-agents.md)."""
    stop_when: Annotated[Name, AfterValidator(condition_text)] | None = None
    """Loop: a condition on ``answer`` (docs/shaping.md) that ends the loop."""
    model: Name | None = None
    """The model of roles that name none."""
    fallback: Annotated[tuple[Name, ...], Field(max_length=MAX_FALLBACKS)] | None = None
    """Fallbacks for a turn whose model fails; None: the fallbacks of the model's provider."""
    max_turns: int = Field(default=100, ge=1, le=10_000)
    """The maximum number of turns of all roles together."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The maximum tokens of one run, in the prompts and answers of all turns."""
    compaction: Compaction = CompactionSettings()
    """How messages are shortened if they exceed a share of the model's window."""
    run_budget: Amounts | None = None
    """The maximum cost of one run, such as ``0.50 USD``."""
    daily_budget: Amounts | None = None
    """The maximum cost of all runs of a day."""
    timeout_s: float = Field(default=900.0, gt=0, le=1800)
    decide_within_s: float = Field(default=604_800.0, gt=0, le=2_592_000)
    """The time that a person has to approve a call or answer a question."""
    on_busy: Literal["wait", "reject", "replace"] = "wait"
    """The handling of a message while an earlier message of its conversation is being answered."""
    public: bool = False
    """Whether anyone may read the agent's A2A card. Messages always need a token."""
    skills: AgentSkills = ()
    """The skills on the agent's A2A card. If empty, the card has one skill, which describes the agent."""
    answer_as: Literal["task", "message"] = "task"
    """The result for an A2A client that waits: a task with the answer, or only the answer."""

    @model_validator(mode="before")
    @classmethod
    def _of_one_role(cls, table: Any) -> Any:
        """A table without ``roles`` has a single role, whose fields are in the agent's table."""
        if not isinstance(table, dict) or table.get("roles"):
            return table
        shared = {"name", "description", "model", "max_tokens", "max_turns", "compaction"}
        own = {field: table[field] for field in Role.model_fields if field in table and field not in shared}
        if "max_turns" in table:
            own["max_turns"] = table["max_turns"]
        rest = {field: value for field, value in table.items() if field not in own}
        return {**rest, "roles": [{"name": "main", **own}]}

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = [role.name for role in self.roles]
        for name in names:
            if names.count(name) > 1:
                raise _of("roles", f"has two roles named {name!r}")
        for field, referred in self._references():
            if referred not in names:
                raise _of(field, f"names {referred!r}, but the roles are {', '.join(names)}")
        required = _REQUIRED.get(self.execution_type)
        if required is not None and getattr(self, required) is None:
            raise _of(required, f"is required for execution_type {self.execution_type!r}")
        if self.execution_type == "single" and len(self.roles) > 1:
            raise _of("execution_type", "'single' has one role; choose how several roles work together")
        if self.execution_type == "parallel" and all(
            role.name == self.aggregator_role for role in self.others(self.parallel_roles)
        ):
            raise _of("aggregator_role", f"{self.aggregator_role!r} has no other roles whose answers it could combine")
        self._check_other_fields()
        if self.execution_type == "hierarchical":
            self._check_tree()
        return self

    def _references(self) -> Iterator[tuple[str, str]]:
        for field in ("aggregator_role", "coordinator_role", "hub_role"):
            if (name := getattr(self, field)) is not None:
                yield field, name
        for field in ("parallel_roles", "worker_roles", "spoke_roles"):
            for name in getattr(self, field):
                yield field, name
        for role in self.roles:
            for name in role.workers:
                yield f"roles.{role.name}.workers", name

    def _check_other_fields(self) -> None:
        """Refuses fields of other flows, because they would be ignored."""
        for field, flows in _FIELDS_OF_FLOWS.items():
            if field in self.model_fields_set and getattr(self, field) and self.execution_type not in flows:
                raise _of(field, f"belongs to execution_type {' or '.join(flows)}, not {self.execution_type!r}")
        if self.execution_type != "hierarchical":
            for role in self.roles:
                if role.workers:
                    raise _of(f"roles.{role.name}.workers", "belongs to execution_type hierarchical")

    def _check_tree(self) -> None:
        pending, seen = [self.coordinator_role or ""], set[str]()
        while pending:
            name = pending.pop()
            if name in seen:
                raise _of(f"roles.{name}", "has two places in the hierarchy; each role reports to one other role")
            seen.add(name)
            pending.extend(self.role(name).workers)
        if unused := [role.name for role in self.roles if role.name not in seen]:
            raise _of("roles", f"{', '.join(unused)}: no role delegates to them")

    def role(self, name: str) -> Role:
        """The role with this name."""
        return next(role for role in self.roles if role.name == name)

    def others(self, chosen: Sequence[str], *excluded: str | None) -> tuple[Role, ...]:
        """The chosen roles; if none are chosen, all roles that are not excluded."""
        return tuple(role for role in self.roles if (role.name in chosen if chosen else role.name not in excluded))

    def workers_of(self, role: Role) -> tuple[Role, ...]:
        """The roles to which this role may delegate."""
        if self.execution_type == "hierarchical":
            return tuple(self.role(name) for name in role.workers)
        if self.execution_type == "coordinator" and role.name == self.coordinator_role:
            return self.others(self.worker_roles, role.name)
        return ()

    def spokes_of(self, role: Role) -> tuple[Role, ...]:
        """The roles that may answer in place of this role."""
        if self.execution_type == "hub-spoke" and role.name == self.hub_role:
            return self.others(self.spoke_roles, role.name)
        return ()


_REQUIRED: Final = {
    "coordinator": "coordinator_role",
    "hierarchical": "coordinator_role",
    "hub-spoke": "hub_role",
    "custom": "custom",
}
"""The field without which a flow is incomplete."""

_FIELDS_OF_FLOWS: Final = {
    "parallel_roles": ("parallel",),
    "aggregator_role": ("parallel",),
    "coordinator_role": ("coordinator", "hierarchical"),
    "worker_roles": ("coordinator",),
    "hub_role": ("hub-spoke",),
    "spoke_roles": ("hub-spoke",),
    "stop_when": ("loop",),
    "custom": ("custom",),
}


def _of(field: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("agent", "{field}: {message}", {"field": field, "message": message})
