"""Hooks: the operator's programs and servers that are asked before and after each call (docs/hooks.md).

They allow a call, refuse it, or change its arguments or its result. Used by dispatch; independent of sessions, limits,
transports and the store.
"""

from .call_hooks import CallHooks, HookCounts
from .hook_messages import HookedCall
from .hook_settings import HookSettings, HookSettingsError, anchored_hooks, read_hooks

__all__ = [
    "CallHooks",
    "HookCounts",
    "HookSettings",
    "HookSettingsError",
    "HookedCall",
    "anchored_hooks",
    "read_hooks",
]
