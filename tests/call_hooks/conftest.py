from collections.abc import AsyncIterator
from typing import Any

import pytest
from toold.call_hooks import CallHooks, HookedCall, read_hooks

from .scripted_hook import ScriptedHook, scripted_hook

CALL = HookedCall("c-1", "crm_get", "crm", "token:ann", "mcp", "editor", "full", True, None)


@pytest.fixture
async def hook() -> AsyncIterator[ScriptedHook]:
    async with scripted_hook() as hook:
        yield hook


class Asked:
    """Hooks as configured by a test."""

    def __init__(self) -> None:
        self.hooks = CallHooks()

    def configure(self, **tables: Any) -> None:
        self.hooks.apply(read_hooks(tables))

    async def before(self, call: HookedCall = CALL, **arguments: Any) -> dict[str, Any]:
        """The arguments with which the call would be made."""

        async def bind(changed: dict[str, Any]) -> dict[str, Any]:
            return changed

        changed = await self.hooks.before(call, arguments, bind, long=False)
        return arguments if changed is None else changed[1]


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    asked = Asked()
    yield asked
    await asked.hooks.close()
