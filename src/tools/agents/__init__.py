"""Hosted agents: tools whose steps models choose (docs/agents.md).

The daemon's wiring uses this package to make a tool of each configured agent. It knows the ``OrchestrationContext``:
turns of models and calls of tools are child calls, so a run is journalled, bounded and resumed like every call. It must
not know the network, the clock, or where prompts are stored.
"""

from .agent_context import AgentContext
from .agent_definition import MAX_PROMPT_CHARS, MAX_ROLES, Agent, ExecutionType, Role
from .agent_files import agent_files, agents_in
from .agent_reader import AgentDefinitionError, FieldProblem, check_cycles, read_agent, read_agents
from .agent_replay_tool import agent_replay_tool
from .agent_runs_tool import agent_runs_tool
from .agent_skill import AgentSkill
from .agent_snapshot import AGENT_SOURCE
from .agent_tool import DETACHED_AGENT_TIMEOUT_S, agent_tools
from .architecture_plan import ArchitecturePlan, PlanMember
from .architecture_tool import INVOKE_TOOL, architecture_tool
from .busy_conversations import BusyConversations
from .recorded_run import RecordedRun, read_run
from .registry_record import names_no_tools
from .searched_collections import COLLECTION_PREFIX, KNOWLEDGE_SOURCE, RESERVED_COLLECTIONS

__all__ = [
    "AGENT_SOURCE",
    "COLLECTION_PREFIX",
    "DETACHED_AGENT_TIMEOUT_S",
    "INVOKE_TOOL",
    "KNOWLEDGE_SOURCE",
    "MAX_PROMPT_CHARS",
    "MAX_ROLES",
    "RESERVED_COLLECTIONS",
    "Agent",
    "AgentContext",
    "AgentDefinitionError",
    "AgentSkill",
    "ArchitecturePlan",
    "BusyConversations",
    "ExecutionType",
    "FieldProblem",
    "PlanMember",
    "RecordedRun",
    "Role",
    "agent_files",
    "agent_replay_tool",
    "agent_runs_tool",
    "agent_tools",
    "agents_in",
    "architecture_tool",
    "check_cycles",
    "names_no_tools",
    "read_agent",
    "read_agents",
    "read_run",
]
