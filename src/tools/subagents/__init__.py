"""Subagents: programs such as Claude Code, which ask their own models. The tool ``clink`` starts them."""

from .clink_tool import clink_tools
from .subagent_settings import SubagentSettings, SubagentSettingsError, read_subagents

__all__ = ["SubagentSettings", "SubagentSettingsError", "clink_tools", "read_subagents"]
