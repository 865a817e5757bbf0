"""The calls that a program makes: each a child call on the road, by its tool's own names of things."""

import time
from typing import Any

from ...protocol.error_codes import ErrorCode
from ...protocol.tool_call import Json
from ...sandbox import ToolFailedError
from ..orchestration_context import OrchestrationContext
from ..stubs import StubSet


class ProgramCalls:
    """Of one program. ``made`` has each call in the order in which they began: tool, ms, ok, and code if it failed."""

    def __init__(self, context: OrchestrationContext, stubs: StubSet) -> None:
        self.made: list[dict[str, Json]] = []
        self._context = context
        self._stubs = stubs

    async def __call__(self, module: str, function: str, given: dict[str, Any]) -> Json:
        """Call the tool of a function, and return its data, or where there is none its text.

        Raises:
            ToolFailedError: it answered an error.
        """
        tool = self._stubs.tool_name(module, function)
        if tool is None:
            raise ToolFailedError(ErrorCode.TOOL_NOT_FOUND.value, f"There is no {module}.{function}.")
        began = time.monotonic()
        told: dict[str, Json] = {"tool": tool, "ms": 0.0, "ok": False}
        self.made.append(told)
        try:
            arguments = self._stubs.arguments(tool, given)
            result = await self._context.call(tool, arguments, name=f"{len(self.made)}.{tool}")
        finally:
            told["ms"] = round((time.monotonic() - began) * 1000, 3)
        if result.error is not None:
            told["code"] = result.error.code
            raise ToolFailedError(result.error.code, result.error.message)
        told["ok"] = True
        return result.value
