"""Calls tools for requests of the platform API."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from ...dispatch import Router
from ..tool_calls import NoToolsetError, ToolCalls
from .platform_error import PlatformError, error_of
from .platform_route import PlatformRequest

TRANSPORT: Final = "platform"


class PlatformCalls:
    """Submits calls to the router, and waits for their results."""

    def __init__(self, router: Router) -> None:
        self._calls = ToolCalls(router, TRANSPORT)

    def __repr__(self) -> str:
        return f"<PlatformCalls {self._calls!r}>"

    async def run(self, request: PlatformRequest, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the data of the tool's result.

        Raises:
            PlatformError: the call failed, or the caller may not call the tool.
        """
        try:
            result = await self._calls.run(request.access, request.client, tool, arguments, size=request.size)
        except NoToolsetError as error:
            raise PlatformError(HTTPStatus.FORBIDDEN, str(error)) from None
        if result.error is not None:
            raise error_of(result.error)
        return result.structured if isinstance(result.structured, dict) else {}
