"""Hooks: the operator's programs and servers that are asked before and after each call (docs/hooks.md).

A hook allows a call, refuses it, or changes its arguments or its result. Dispatch uses this package, which is
independent of sessions, limits, transports and the store.
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
