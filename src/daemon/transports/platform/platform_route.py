"""The routes of the platform API: a method, a path with named parts, and a handler. Pure."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import msgspec

from ....protocol.authorization import Authorization
from ....protocol.name_suggestions import close_names, did_you_mean
from ....protocol.tool_call import ClientInfo, Principal
from .platform_error import PlatformError


class PlatformRequest(msgspec.Struct, frozen=True):
    """An authorized request."""

    access: Authorization
    client: ClientInfo
    path: Mapping[str, str]
    """The named parts of the path."""
    query: Mapping[str, str]
    body: dict[str, Any]
    """Empty if the route takes none."""
    size: int
    """The length of the body in bytes."""

    @property
    def principal(self) -> Principal:
        return self.access.principal


class PlatformAnswer(msgspec.Struct, frozen=True):
    """The answer to a request."""

    body: Any
    """Encoded as JSON."""
    status: int = HTTPStatus.OK


PlatformHandler = Callable[[PlatformRequest], Awaitable[PlatformAnswer]]
"""Answers a request, or raises a ``PlatformError`` or a ``CallError``."""


class PlatformRoute(msgspec.Struct, frozen=True):
    """One path and method."""

    method: str
    template: str
    """A part in braces matches any one part: ``/api/v1/jobs/{id}``."""
    handler: PlatformHandler
    takes_body: bool = False
    """The request has a JSON object as its body."""

    def match(self, path: str) -> dict[str, str] | None:
        """Returns the named parts of ``path`` if it matches this route, otherwise None."""
        names, parts = self.template.split("/"), path.rstrip("/").split("/")
        if len(names) != len(parts):
            return None
        values: dict[str, str] = {}
        for name, part in zip(names, parts, strict=True):
            if name.startswith("{"):
                values[name[1:-1]] = part
            elif name != part:
                return None
        return None if "" in values.values() else values


def find_route(routes: Sequence[PlatformRoute], method: str, path: str) -> tuple[PlatformRoute, Mapping[str, str]]:
    """The route of a request, and the named parts of its path.

    Raises:
        PlatformError: the path does not exist, or does not accept the method.
    """
    matching = [(route, values) for route in routes if (values := route.match(path)) is not None]
    for route, values in matching:
        if route.method == method:
            return route, {name: unquote(value) for name, value in values.items()}
    if matching:
        allowed = ", ".join(sorted({route.method for route, _ in matching}))
        raise PlatformError(
            HTTPStatus.METHOD_NOT_ALLOWED, f"{path[:100]} accepts {allowed} only.", (("allow", allowed),)
        )
    served = sorted({route.template for route in routes})
    hint = did_you_mean(close_names(path, served, n=1)) or f"the available paths are {', '.join(served)}."
    raise PlatformError(HTTPStatus.NOT_FOUND, f"{path[:100]} does not exist; {hint}")
