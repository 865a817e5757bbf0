"""The envelope of a request: its revision, its client, and the client's capabilities. Pure.

In the stateless revisions, the envelope is in ``params._meta`` and in headers. Both must be equal, so that proxies that
route by headers agree with servers that read bodies. In earlier revisions, a header names the revision, and
``initialize`` has transferred the rest.
"""

import base64
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from ..json_rpc import HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_VERSION, MessageProblem, RpcRequest
from ..questions.client_question import kinds_declared
from ..tool_call import ClientInfo
from .mcp_revision import DEFAULT_REVISION, REVISIONS, STATELESS, McpRevision

VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"

_NAMED: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""Maps methods to the parameter that the header ``Mcp-Name`` repeats."""

_ENCODED: Final = re.compile(r"=\?base64\?(.*)\?=")
_MAX_CLIENT_CHARS: Final = 200


class RequestEnvelope(msgspec.Struct, frozen=True):
    """The properties of a request that do not depend on its method."""

    revision: McpRevision
    client: ClientInfo = ClientInfo()
    tasks: bool = False
    """Whether the client declares the tasks extension."""
    progress_token: str | int | None = None
    answers: tuple[str, ...] = ()
    """The kinds of questions that the client declares to answer in this request."""


_PLAIN: Final = {name: RequestEnvelope(revision) for name, revision in REVISIONS.items()}


def http_envelope(request: RpcRequest, headers: Mapping[str, str]) -> RequestEnvelope | MessageProblem:
    """Reads the envelope of an HTTP request, or returns the problem. ``headers`` have lower-case names."""
    meta = request.params.get("_meta")
    named = headers.get(VERSION_HEADER)
    if named is None and not (isinstance(meta, dict) and VERSION_KEY in meta):
        return _with_handshake(DEFAULT_REVISION, meta)
    revision = REVISIONS.get(named or "")
    if revision is not None and not revision.stateless:
        return _with_handshake(revision, meta)
    if revision is None and named is not None and not (isinstance(meta, dict) and VERSION_KEY in meta):
        return unsupported(named)
    return _stateless(request, meta, headers)


def stdio_envelope(request: RpcRequest, negotiated: McpRevision) -> RequestEnvelope | MessageProblem:
    """Reads the envelope of a request without headers, on a channel with the revision ``negotiated``."""
    meta = request.params.get("_meta")
    if isinstance(meta, dict) and VERSION_KEY in meta:
        return _stateless(request, meta, None)
    return _with_handshake(negotiated, meta)


def _with_handshake(revision: McpRevision, meta: object) -> RequestEnvelope:
    """The envelope of a request in a revision with ``initialize``."""
    token = None if meta is None else progress_token(meta)
    return _PLAIN[revision.name] if token is None else RequestEnvelope(revision, progress_token=token)


def revision_of_notification(headers: Mapping[str, str]) -> McpRevision | MessageProblem:
    """Returns the revision of a notification, by its header alone."""
    named = headers.get(VERSION_HEADER)
    return DEFAULT_REVISION if named is None else REVISIONS.get(named) or unsupported(named)


def unsupported(version: str) -> MessageProblem:
    """Returns the error for an unsupported version."""
    message = f"The protocol version {version[:40]!r} is not supported; supported are {', '.join(REVISIONS)}."
    return MessageProblem(UNSUPPORTED_VERSION, message, {"supported": list(STATELESS), "requested": version})


def client_of(value: object) -> ClientInfo:
    """Returns the name and version that the client declares; empty if they are missing or invalid."""
    if not isinstance(value, dict):
        return ClientInfo()
    name, version = value.get("name"), value.get("version")
    return ClientInfo(
        name[:_MAX_CLIENT_CHARS] if isinstance(name, str) else "",
        version[:_MAX_CLIENT_CHARS] if isinstance(version, str) else "",
    )


def _stateless(
    request: RpcRequest, meta: object, headers: Mapping[str, str] | None
) -> RequestEnvelope | MessageProblem:
    if not isinstance(meta, dict):
        return MessageProblem(
            INVALID_PARAMS, f"params._meta must be an object with {VERSION_KEY} and {CAPABILITIES_KEY}."
        )
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        return MessageProblem(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}.")
    version, capabilities = meta[VERSION_KEY], meta[CAPABILITIES_KEY]
    if not isinstance(capabilities, dict):
        return MessageProblem(INVALID_PARAMS, f"params._meta[{CAPABILITIES_KEY!r}] must be an object.")
    difference = None if headers is None else _difference(request, version, headers)
    if difference:
        return MessageProblem(HEADER_MISMATCH, difference)
    revision = REVISIONS.get(version) if isinstance(version, str) else None
    if revision is None or not revision.stateless:
        return unsupported(str(version))
    extensions = capabilities.get("extensions")
    return RequestEnvelope(
        revision,
        client_of(meta.get(CLIENT_KEY)),
        isinstance(extensions, dict) and TASKS_EXTENSION in extensions,
        progress_token(meta),
        kinds_declared(capabilities),
    )


def _difference(request: RpcRequest, version: object, headers: Mapping[str, str]) -> str | None:
    """Returns the first difference between headers and body."""
    if headers.get(VERSION_HEADER) != version:
        return f"The header {VERSION_HEADER} differs from params._meta[{VERSION_KEY!r}]."
    if headers.get(METHOD_HEADER) != request.method:
        return f"The header {METHOD_HEADER} differs from the request's method."
    parameter = _NAMED.get(request.method)
    if parameter is not None and parameter in request.params:
        header = headers.get(NAME_HEADER)
        if header is None or _decoded(header) != request.params[parameter]:
            return f"The header {NAME_HEADER} differs from params.{parameter}."
    return None


def _decoded(value: str) -> str | None:
    """Decodes a header's value, which is base64 if it is not plain ASCII; None if it is malformed."""
    wrapped = _ENCODED.fullmatch(value)
    if wrapped is None:
        return value
    try:
        decoded = base64.b64decode(wrapped[1], validate=True)
        canonical = base64.b64encode(decoded).decode() == wrapped[1]
        return decoded.decode() if canonical else None
    except ValueError:  # not base64, not ASCII, or not UTF-8
        return None


def progress_token(meta: object) -> str | int | None:
    """Returns the progress token in a request's ``_meta``, if its client asks for progress."""
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None
