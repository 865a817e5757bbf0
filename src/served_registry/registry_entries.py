"""The models of the served registry's entries: skills, tools, rag configurations, prompts, architectures, agents.

The fields and their defaults are those of cs-agent-registry-api. Unknown fields are refused, so that misspelt fields
are noticed. docs/registry.md describes the fields that have an effect.
"""

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..agent_registry import MAX_ID_CHARS
from ..sources import HttpUrl
from ..tools import MAX_PROMPT_CHARS, ExecutionType, TemplateFormat, condition_text

MAX_REFERENCES: Final = 100
"""The maximum number of skills, tools or rag configurations of one agent."""
MAX_ITEMS: Final = 1000
"""The maximum items of a list in a body, such as ``document_sources``, and fields of a body."""
MAX_MEMBERS: Final = 32
"""The maximum number of agents in an architecture; equal to that of roles in an agent."""
MAX_RETRY_COUNT: Final = 10
MAX_INVOKE_S: Final = 1800
"""The longest ``timeout`` of an architecture; equal to that of an agent's run."""

_CONFIG: Final = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)
_UNUSABLE_IN_PATH: Final = re.compile(r"[/\x00-\x1f\x7f]")


def _entry_id(text: str) -> str:
    if not 0 < len(text) <= MAX_ID_CHARS or text in {".", ".."} or _UNUSABLE_IN_PATH.search(text):
        why = f"must have 1 to {MAX_ID_CHARS} characters, without '/' and control characters, since it is part of paths"
        raise PydanticCustomError("entry_id", "{why}", {"why": why})
    return text


def _distinct(ids: list[str]) -> list[str]:
    """The ids without duplicates, since an answer contains each entry in full."""
    return list(dict.fromkeys(ids))


EntryId = Annotated[str, AfterValidator(_entry_id)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(max_length=20_000)]
Labels = Annotated[list[Label], Field(max_length=MAX_REFERENCES)]
References = Annotated[list[EntryId], Field(max_length=MAX_REFERENCES), AfterValidator(_distinct)]
MaybeUrl = HttpUrl | Literal[""]


class SkillEntry(BaseModel):
    """An ability of an agent, described for people and for ``discover``."""

    model_config = _CONFIG

    id: EntryId
    name: Label
    description: Text
    tags: Labels = []
    examples: Annotated[list[Text], Field(max_length=MAX_REFERENCES)] = []
    metadata: dict[str, Any] = {}


class RegisteredTool(BaseModel):
    """A tool that agents may have."""

    model_config = _CONFIG

    id: EntryId
    name: Label
    description: Text
    provider: Literal["builtin", "mcp", "openapi", "custom"] = "builtin"
    active: bool = True
    """Roles do not get a tool that is not active."""
    mcp_server: Label | None = None
    mcp_server_url: HttpUrl | None = None
    mcp_tool_name: Label | None = None
    openapi_spec: Text | None = None
    openapi_operation: Label | None = None
    handler: Label | None = None
    parameters: Annotated[list[dict[str, Any]], Field(max_length=MAX_REFERENCES)] = []
    metadata: dict[str, Any] = {}


class RagEntry(BaseModel):
    """A configuration of retrieval, which is only stored and returned."""

    model_config = _CONFIG

    id: EntryId
    name: Label
    rag_type: Literal["vector_store", "knowledge_base", "web_search", "document"]
    vector_store_provider: Label | None = None
    vector_store_config: dict[str, Any] = {}
    knowledge_base_id: Label | None = None
    knowledge_base_provider: Label | None = None
    web_search_provider: Label | None = None
    web_search_config: dict[str, Any] = {}
    document_sources: Annotated[list[Text], Field(max_length=MAX_ITEMS)] = []
    document_loader: Label | None = None
    chunk_size: int = Field(default=1000, ge=1, le=1_000_000)
    chunk_overlap: int = Field(default=200, ge=0)
    embedding_model: Label = "text-embedding-ada-002"
    top_k: int = Field(default=5, ge=1, le=1000)
    similarity_threshold: float | None = Field(default=None, ge=-1, le=1)
    metadata: dict[str, Any] = {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.chunk_overlap >= self.chunk_size:
            raise PydanticCustomError("rag", "chunk_overlap must be less than chunk_size")
        return self


class PromptEntry(BaseModel):
    """A prompt; each change makes a version."""

    model_config = _CONFIG

    id: EntryId
    template: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PROMPT_CHARS)]
    description: Text = ""
    template_format: TemplateFormat | None = None
    model: Label | None = None
    tags: Labels = []
    metadata: dict[str, Any] = {}


class ArchitectureMember(BaseModel):
    """An agent of an architecture."""

    model_config = _CONFIG

    agent_id: EntryId
    role: Label = "worker"
    config: dict[str, Any] = {}


class ArchitectureConnection(BaseModel):
    """A connection of a hierarchical architecture: who delegates to whom, by agent id."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)

    source: EntryId = Field(alias="from")
    target: EntryId = Field(alias="to")


class ArchitectureEntry(BaseModel):
    """A group of agents that answer a query together."""

    model_config = _CONFIG

    name: Label
    description: Text
    pattern: Literal["sequential", "parallel", "loop", "coordinator", "hub-spoke", "hierarchical"]
    agents: Annotated[list[ArchitectureMember], Field(min_length=1, max_length=MAX_MEMBERS)]
    connections: Annotated[list[ArchitectureConnection], Field(max_length=MAX_MEMBERS)] = []
    shared_tools: References = []
    shared_rag: References = []
    timeout: int = Field(default=300, ge=1, le=MAX_INVOKE_S)
    """Seconds for all agents together."""
    retry_count: int = Field(default=3, ge=0, le=MAX_RETRY_COUNT)
    """How often an agent's call is repeated after a retryable error."""
    max_iterations: int = Field(default=5, ge=1, le=100)
    """The maximum number of repeats of a loop."""
    stop_when: Annotated[Label, AfterValidator(condition_text)] | None = None
    """When a loop ends early: a condition on ``answer``."""
    metadata: dict[str, Any] = {}


class RoleEntry(BaseModel):
    """A role of an agent. The definition of the whole agent is checked by the code that reads agents."""

    model_config = _CONFIG

    name: Label
    prompt_ref: Label | None = None
    prompt_inline: str | None = None
    tools: Annotated[list[str | dict[str, Any]], Field(max_length=MAX_REFERENCES)] = []
    max_turns: int = 10
    model: Label | None = None
    metadata: dict[str, Any] = {}
    # Not in the predecessor's registry; left out of answers unless they are set.
    instruction: str | None = None
    phoenix_prompt_name: Label | None = None
    prompt_tag: Label | None = None
    description: Text | None = None
    agents: Labels | None = None
    workers: Labels | None = None
    approve: Labels | Literal["destructive"] | None = None
    ask: bool | None = None
    answer_schema: dict[str, Any] | None = None
    permission_mode: Label | None = None
    task_type: Label | None = None
    complexity: Label | None = None


class AgentEntry(BaseModel):
    """An agent in the form of requests; ``registered_card.py`` has the form of answers."""

    model_config = _CONFIG

    name: Label
    description: Annotated[str, StringConstraints(max_length=4000)]
    url: MaybeUrl = ""
    version: Label = "1.0.0"
    agent_type: Literal["general", "researcher", "analyzer", "writer", "coordinator", "hub", "spoke", "custom"] = (
        "general"
    )
    protocol_version: Label = "0.3.0"
    input_modes: Labels = ["text"]
    output_modes: Labels = ["text"]
    streaming: bool = False
    push_notifications: bool = False
    state_transition: bool = False
    artifacts: bool = True
    inline_tool_calls: bool = False
    skill_ids: References = []
    tool_ids: References = []
    rag_ids: References = []
    owner: Label | None = None
    team: Label | None = None
    tags: Labels = []
    is_public: bool = False
    is_discoverable: bool = True
    requires_auth: bool = False
    rate_limit: int | None = Field(default=None, ge=1)
    metadata: dict[str, Any] = {}
    deployment_status: Label | None = None
    cloud_run_url: MaybeUrl | None = None
    cloud_run_service: Label | None = None
    # The fields that control its runs.
    execution_type: ExecutionType | None = None
    roles: list[RoleEntry] = []
    permission_mode: Label = "bypassPermissions"
    chain_output: bool = True
    parallel_roles: Labels = []
    aggregator_role: Label | None = None
    coordinator_role: Label | None = None
    worker_roles: Labels = []
    hub_role: Label | None = None
    spoke_roles: Labels = []
    max_iterations: int = Field(default=5, ge=1, le=100)
    stop_when: Annotated[Label, AfterValidator(condition_text)] | None = None
    cost_preference: Label | None = None
    mcp_servers: Annotated[list[HttpUrl], Field(max_length=MAX_REFERENCES)] = []

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.execution_type is None and len(self.roles) > 1:
            why = "execution_type is required for several roles: it says how they work together"
            raise PydanticCustomError("agent_entry", "{why}", {"why": why})
        return self


RUNTIME_FIELDS: Final = (
    *("execution_type", "permission_mode", "chain_output", "parallel_roles", "aggregator_role", "coordinator_role"),
    *("worker_roles", "hub_role", "spoke_roles", "max_iterations", "stop_when", "cost_preference", "mcp_servers"),
    "roles",
)
"""The fields of an agent that answers contain in ``runtime_config``."""
