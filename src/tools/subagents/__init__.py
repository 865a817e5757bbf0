"""Subagents: programs that ask their own models, such as Claude Code, that the tool ``clink`` starts."""

from .clink_tool import clink_tools
from .subagent_settings import SubagentSettings, SubagentSettingsError, read_subagents

__all__ = ["SubagentSettings", "SubagentSettingsError", "clink_tools", "read_subagents"]
