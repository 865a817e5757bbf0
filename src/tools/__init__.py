"""Tools: their definition, registry and catalog, and the built-in tools, one file each.

Used by dispatch, which binds arguments, runs tools and renders results, and by packages with further tools. Knows the
providers' neutral request and the model catalog. Must not know sockets, sessions or limits.
"""

from .agent_records import AgentRecords
from .agents import (
    AGENT_SOURCE,
    COLLECTION_PREFIX,
    DETACHED_AGENT_TIMEOUT_S,
    INVOKE_TOOL,
    KNOWLEDGE_SOURCE,
    MAX_PROMPT_CHARS,
    MAX_ROLES,
    RESERVED_COLLECTIONS,
    Agent,
    AgentContext,
    AgentDefinitionError,
    AgentSkill,
    ArchitecturePlan,
    BusyConversations,
    ExecutionType,
    FieldProblem,
    PlanMember,
    Role,
    agent_files,
    agent_replay_tool,
    agent_runs_tool,
    agent_tools,
    agents_in,
    architecture_tool,
    check_cycles,
    names_no_tools,
    read_agent,
    read_agents,
    read_run,
)
from .argument_binding import AdaptedValues, BoundArguments, bind
from .binding_settings import Binding, BindingError, anchored_table, read_bindings, read_source_bindings
from .bound_arguments import BoundValue, ToolBinder, mask_of, read_values
from .builtin.sim_effect import EFFECT_LOG, simulated_tools
from .builtin.workflow import workflows_in
from .call_info import SHOWN_ID_CHARS, CallInfo, CallState, unknown_call
from .client_instructions import SOURCE_INSTRUCTIONS, instructions
from .completions import (
    ANSWER_TOKENS,
    MAX_FALLBACKS,
    ask,
    available_models,
    estimate_embeddings,
    estimate_request,
    estimate_tokens,
    expand_folders,
    read_files,
    read_images,
)
from .continued_work import continued_by_run
from .conversation import MAX_STATE_BYTES, Conversation, Turn
from .form_questions import FormT, form_answer, form_question
from .former_arguments import default_notices
from .json_schema import JsonSchema
from .model_question import AUTO, ModelQuestion, QuestionOptions, QuestionResult
from .money_amounts import Amounts
from .orchestration import named_by, pipelines_in
from .orchestration_context import CHILD_NAME, EarlierSteps, LookupContext, OrchestrationContext, RateState, RunSpending
from .prompt_source import PromptError, PromptQuery, PromptSource, ResolvedPrompt, TemplateFormat
from .result_text import ResultText, conversational_outputs, former_error
from .retained_results import RESULT_FORMATS, ResultFormat, RetainedFile, RetainedResult, RetainedResults
from .search_fields import RankedTool
from .secret_location import HEADER_VALUE, SecretLocation, SecretUnavailableError, anchored_secret
from .setting_messages import condition_text, setting_message
from .stubs import StubSet, module_for
from .subagents import SubagentSettings, SubagentSettingsError, clink_tools, read_subagents
from .tool import Arguments, ToolOutput, tool
from .tool_catalog import ToolCatalog, ToolsetView
from .tool_context import DaemonView, ToolContext, VendorOperation
from .tool_definition import OWN_SOURCE, TOOL_NAME, Tool
from .tool_loading import find_tools, load_registry
from .tool_ranking import rank as rank_tools
from .tool_registry import ToolRegistry
from .tool_result import content, described, is_long, meta_of
from .toolsets import (
    DEFAULT_TOOLSET,
    FULL_TOOLSET,
    Presentation,
    Toolset,
    ToolsetError,
    read_toolsets,
    shipped_toolsets,
)
from .user_credentials import CredentialLookup, NoCredentials
from .value_mask import MASKED, ValueMask
from .vendor_file_access import VendorFileAccess
from .work_thread import TOOL_THREAD, WorkThread, in_tool_thread
from .workspace_files import MAX_TEXT_BYTES, BinaryFile, FileAccess
from .workspace_folders import MAX_ENTRIES, folder_entries
from .yaml_reader import YamlError, read_yaml

__all__ = [
    "AGENT_SOURCE",
    "ANSWER_TOKENS",
    "AUTO",
    "CHILD_NAME",
    "COLLECTION_PREFIX",
    "DEFAULT_TOOLSET",
    "DETACHED_AGENT_TIMEOUT_S",
    "EFFECT_LOG",
    "FULL_TOOLSET",
    "HEADER_VALUE",
    "INVOKE_TOOL",
    "KNOWLEDGE_SOURCE",
    "MASKED",
    "MAX_ENTRIES",
    "MAX_FALLBACKS",
    "MAX_PROMPT_CHARS",
    "MAX_ROLES",
    "MAX_STATE_BYTES",
    "MAX_TEXT_BYTES",
    "OWN_SOURCE",
    "RESERVED_COLLECTIONS",
    "RESULT_FORMATS",
    "SHOWN_ID_CHARS",
    "SOURCE_INSTRUCTIONS",
    "TOOL_NAME",
    "TOOL_THREAD",
    "AdaptedValues",
    "Agent",
    "AgentContext",
    "AgentDefinitionError",
    "AgentRecords",
    "AgentSkill",
    "Amounts",
    "ArchitecturePlan",
    "Arguments",
    "BinaryFile",
    "Binding",
    "BindingError",
    "BoundArguments",
    "BoundValue",
    "BusyConversations",
    "CallInfo",
    "CallState",
    "Conversation",
    "CredentialLookup",
    "DaemonView",
    "EarlierSteps",
    "ExecutionType",
    "FieldProblem",
    "FileAccess",
    "FormT",
    "JsonSchema",
    "LookupContext",
    "ModelQuestion",
    "NoCredentials",
    "OrchestrationContext",
    "PlanMember",
    "Presentation",
    "PromptError",
    "PromptQuery",
    "PromptSource",
    "QuestionOptions",
    "QuestionResult",
    "RankedTool",
    "RateState",
    "ResolvedPrompt",
    "ResultFormat",
    "ResultText",
    "RetainedFile",
    "RetainedResult",
    "RetainedResults",
    "Role",
    "RunSpending",
    "SecretLocation",
    "SecretUnavailableError",
    "StubSet",
    "SubagentSettings",
    "SubagentSettingsError",
    "TemplateFormat",
    "Tool",
    "ToolBinder",
    "ToolCatalog",
    "ToolContext",
    "ToolOutput",
    "ToolRegistry",
    "Toolset",
    "ToolsetError",
    "ToolsetView",
    "Turn",
    "ValueMask",
    "VendorFileAccess",
    "VendorOperation",
    "WorkThread",
    "YamlError",
    "agent_files",
    "agent_replay_tool",
    "agent_runs_tool",
    "agent_tools",
    "agents_in",
    "anchored_secret",
    "anchored_table",
    "architecture_tool",
    "ask",
    "available_models",
    "bind",
    "check_cycles",
    "clink_tools",
    "condition_text",
    "content",
    "continued_by_run",
    "conversational_outputs",
    "default_notices",
    "described",
    "estimate_embeddings",
    "estimate_request",
    "estimate_tokens",
    "expand_folders",
    "find_tools",
    "folder_entries",
    "form_answer",
    "form_question",
    "former_error",
    "in_tool_thread",
    "instructions",
    "is_long",
    "load_registry",
    "mask_of",
    "meta_of",
    "module_for",
    "named_by",
    "names_no_tools",
    "pipelines_in",
    "rank_tools",
    "read_agent",
    "read_agents",
    "read_bindings",
    "read_files",
    "read_images",
    "read_run",
    "read_source_bindings",
    "read_subagents",
    "read_toolsets",
    "read_values",
    "read_yaml",
    "setting_message",
    "shipped_toolsets",
    "simulated_tools",
    "tool",
    "unknown_call",
    "workflows_in",
]
