"""Requests to the served registry, their routes and their answers. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ....protocol.authorization import Authorization
from ....protocol.json_pieces import decode_in_pieces, finite
from ....protocol.tool_call import ClientInfo
from ....served_registry import Kind, RegistryRefusedError

REGISTRY_PREFIX: Final = "/registry"
TRANSPORT: Final = "registry"

_decode: Final = msgspec.json.Decoder(float_hook=finite).decode

Operation = Literal[
    "health",
    "list",
    "create",
    "read",
    "replace",
    "patch",
    "delete",
    "versions",
    "read_version",
    "set_url",
    "runtime_config",
    "builtin_tools",
    "mcp_servers",
    "discover",
    "invoke",
]
READING: Final[frozenset[Operation]] = frozenset(
    {
        *("health", "list", "read", "versions", "read_version", "runtime_config", "builtin_tools", "mcp_servers"),
        *("discover", "invoke"),
    }
)
"""The operations that do not change the registry: any token may use them. All others need the right to write."""


class RegistryRoute(NamedTuple):
    """The operation that a method and a path address."""

    operation: Operation
    kind: Kind | None = None
    entry_id: str = ""
    version: str = ""


class RegistryRequest(NamedTuple):
    """An admitted request."""

    access: Authorization
    client: ClientInfo
    route: RegistryRoute
    query: Mapping[str, str]
    body: Any
    size: int
    if_match: str | None
    if_none_match: str | None
    origin: str
    """Scheme and host as in the request."""


class RegistryAnswer(NamedTuple):
    """An answer."""

    body: bytes
    status: int = 200
    etag: str | None = None


Methods = Mapping[str, RegistryRoute]

_COLLECTIONS: Final[Mapping[str, Operation]] = {"GET": "list", "POST": "create"}
_ENTRIES: Final[Mapping[str, Operation]] = {"GET": "read", "PUT": "replace", "PATCH": "patch", "DELETE": "delete"}
_SINGLE: Final[Mapping[str, Operation]] = {
    "health": "health",
    "builtin-tools": "builtin_tools",
    "mcp-servers": "mcp_servers",
    "discover": "discover",
}
_BELOW: Final[Mapping[tuple[Kind, str], tuple[str, Operation]]] = {
    (Kind.AGENT, "url"): ("PATCH", "set_url"),
    (Kind.AGENT, "runtime-config"): ("GET", "runtime_config"),
    (Kind.PROMPT, "versions"): ("GET", "versions"),
    (Kind.ARCHITECTURE, "invoke"): ("POST", "invoke"),
}


def methods_of(path: str) -> Methods:
    """The routes of a path below the registry's, by HTTP method; empty if the path does not exist."""
    steps = path.strip("/").split("/")
    if len(steps) == 1 and steps[0] in _SINGLE:
        return {"GET": RegistryRoute(_SINGLE[steps[0]])}
    if steps[0] not in set(Kind) or not all(steps):
        return {}
    return _of_kind(Kind(steps[0]), steps[1:])


def _of_kind(kind: Kind, steps: Sequence[str]) -> Methods:
    match steps:
        case []:
            return {method: RegistryRoute(operation, kind) for method, operation in _COLLECTIONS.items()}
        case [entry_id]:
            return {method: RegistryRoute(operation, kind, entry_id) for method, operation in _ENTRIES.items()}
        case [entry_id, below] if (kind, below) in _BELOW:
            method, operation = _BELOW[(kind, below)]
            return {method: RegistryRoute(operation, kind, entry_id)}
        case [entry_id, "versions", version] if kind is Kind.PROMPT:
            return {"GET": RegistryRoute("read_version", kind, entry_id, version)}
    return {}


def decode_body(body: bytes) -> Any:
    """Returns the body of a request, or a ``RegistryRefusedError`` if it is not JSON."""
    return _decoded(_decode, body)


def decode_long_body(body: bytes) -> Any:
    """``decode_body`` for a body of any length, in steps of some 25 ms."""
    return _decoded(decode_in_pieces, body)


def _decoded(decode: Any, body: bytes) -> Any:
    try:
        return decode(body)
    except (ValueError, RecursionError) as error:
        detail = {"loc": ["body"], "msg": f"is not JSON, or too complex: {error}", "type": "json_invalid"}
        return RegistryRefusedError(422, [detail])
