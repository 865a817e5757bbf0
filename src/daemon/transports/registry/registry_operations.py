"""The operations of the served registry."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ....protocol.authorization import Authorization
from ....served_registry import (
    NAMES,
    Kind,
    RegistryLibrary,
    RegistryRefusedError,
    discover,
    etag_of,
    field_problem,
    list_answer,
    mcp_servers_of,
    runtime_record,
)
from ....tools import INVOKE_TOOL, OWN_SOURCE, Tool, ToolCatalog
from ..http_client import toolsets_of
from ..platform.platform_error import error_of
from ..tool_calls import NoToolsetError, ToolCalls
from .registry_request import RegistryAnswer, RegistryRequest

SERVICE: Final = "agent-registry-api"
"""The name in the health answer of the predecessor's registry, which clients may check."""
API_VERSION: Final = "2.1.0"
"""The version of the predecessor's API whose routes are served."""

_encode: Final = msgspec.json.Encoder().encode


class RegistryOperations:
    """Answers the requests of all callers."""

    def __init__(
        self,
        library: RegistryLibrary,
        catalog: Callable[[], ToolCatalog],
        calls: ToolCalls,
        *,
        store_problem: Callable[[], str | None],
        traced: Callable[[], bool],
    ) -> None:
        """``traced``: whether traces are recorded."""
        self._library = library
        self._catalog = catalog
        self._calls = calls
        self._store_problem = store_problem
        self._traced = traced

    def health(self) -> RegistryAnswer:
        """Whether entries can be read and written. Needs no token, so it names no entry and no address."""
        problem = self._store_problem()
        loaded = self._library.is_loaded
        counts = {kind.value: self._library.content.count(kind) for kind in Kind} if loaded else {}
        healthy = loaded and problem is None
        status = "healthy" if healthy else "unhealthy"
        storage = {"type": "sqlite", "status": "ok" if healthy else "error", "counts": counts}
        tracing = {"enabled": self._traced(), "endpoint": ""}
        health = {"status": status, "service": SERVICE, "version": API_VERSION, "storage": storage, "tracing": tracing}
        return RegistryAnswer(_encode(health), 200 if healthy else 503)

    async def answer(self, request: RegistryRequest) -> RegistryAnswer:
        """Answers a request.

        Raises:
            RegistryRefusedError: it is refused.
        """
        operation, kind, entry_id, _ = request.route
        if kind is None:
            return self._of_daemon(request)
        match operation:
            case "list":
                return RegistryAnswer(list_answer(self._library.content, kind, request.query))
            case "create":
                return _created(kind, *await self._library.create(kind, request.body))
            case "read":
                return self._read(kind, entry_id, request)
            case "replace" | "patch":
                expected = _expected(request.if_match)
                patch = operation == "patch"
                etag = await self._library.replace(kind, entry_id, request.body, expected, patch=patch)
                return _changed(kind, entry_id, etag)
            case "set_url":
                url = _only_field(request.body, "url")
                expected = _expected(request.if_match)
                etag = await self._library.replace(kind, entry_id, {"url": url}, expected, patch=True)
                return _changed(kind, entry_id, etag, url=url)
            case "delete":
                await self._library.delete(kind, entry_id, _expected(request.if_match))
                return RegistryAnswer(_encode({"status": "deleted", NAMES[kind].id_field: entry_id}))
            case "invoke":
                return await self._invoke(request, entry_id)
            case _:
                return self._below(request, kind, entry_id)

    def _below(self, request: RegistryRequest, kind: Kind, entry_id: str) -> RegistryAnswer:
        content = self._library.content
        match request.route.operation:
            case "runtime_config":
                return _conditional(_encode(self._runtime_config(entry_id)), request)
            case "versions":
                versions = [content.view(kind, each) for each in content.versions(kind, entry_id)]
                return RegistryAnswer(_encode({"versions": versions, "count": len(versions)}))
            case "read_version":
                for each in content.versions(kind, entry_id):
                    if str(each.row.version) == request.route.version:
                        return _conditional(_encode(content.view(kind, each)), request)
                message = f"the prompt {entry_id!r} has no version {request.route.version[:20]!r}, or no longer"
                raise RegistryRefusedError(404, message)
        raise RegistryRefusedError(404, "Not Found")

    def _read(self, kind: Kind, entry_id: str, request: RegistryRequest) -> RegistryAnswer:
        encoded, etag = self._library.answer(kind, entry_id)
        if _names(request.if_none_match, etag):
            return RegistryAnswer(b"", 304, etag)
        return RegistryAnswer(encoded, 200, etag)

    def _runtime_config(self, agent_id: str) -> dict[str, Any]:
        """The agent's runtime configuration, with the tools that its roles really have."""
        content = self._library.content
        entry, tools = content.newest(Kind.AGENT, agent_id).table, content.tables(Kind.TOOL)
        record = runtime_record(agent_id, entry, tools)
        if record is None:
            raise RegistryRefusedError(404, f"the agent {agent_id!r} has no roles, so it runs elsewhere")
        config = {**record.pop("runtime_config"), "mcp_servers": mcp_servers_of(entry, tools)}
        return {**record, **config}

    async def _invoke(self, request: RegistryRequest, architecture_id: str) -> RegistryAnswer:
        """Runs an architecture as a call of its tool. Answers 202 with the call's id if the call is detached or waits
        for a person.
        """
        self._library.content.newest(Kind.ARCHITECTURE, architecture_id)
        if not isinstance(query := _only_field(request.body, "query"), str):
            raise RegistryRefusedError(422, [field_problem(("query",), "must be text")])
        detach = request.query.get("detach", "false").lower()
        if detach not in {"true", "false"} or not set(request.query) <= {"detach"}:
            problem = {"loc": ["query"], "msg": "may only have detach, true or false", "type": "value_error"}
            raise RegistryRefusedError(422, [problem])
        arguments = {"architecture": architecture_id, "query": query, "detach": detach == "true"}
        try:
            result = await self._calls.run(
                request.access, request.client, INVOKE_TOOL, arguments, size=request.size, cancelled_with_client=True
            )
        except NoToolsetError as error:
            raise RegistryRefusedError(403, str(error)) from None
        if result.error is not None:
            refused = error_of(result.error)
            raise RegistryRefusedError(refused.status, refused.detail)
        data = result.structured if isinstance(result.structured, dict) else {}
        return RegistryAnswer(_encode(data), 202 if "call_id" in data else 200)

    # --- of the daemon -----------------------------------------------------------------------------------------------

    def _of_daemon(self, request: RegistryRequest) -> RegistryAnswer:
        if request.route.operation == "builtin_tools":
            return RegistryAnswer(_listed("tools", self._builtin_tools(request.access)))
        if request.route.operation == "discover":
            return RegistryAnswer(_encode(discover(self._library.content, request.query)))
        return RegistryAnswer(_listed("mcp_servers", self._mcp_servers(request.origin)))

    def _builtin_tools(self, access: Authorization) -> list[dict[str, Any]]:
        """The daemon's own tools that the caller may call."""
        catalog, tools = self._catalog(), dict[str, Tool]()
        for toolset in toolsets_of(catalog, access):
            tools |= {name: tool for name, tool in catalog.view(toolset).tools.items() if tool.source == OWN_SOURCE}
        return [
            {"id": name, "name": name, "description": tool.description, "provider": "builtin", "active": True}
            for name, tool in sorted(tools.items())
        ]

    def _mcp_servers(self, origin: str) -> list[dict[str, str]]:
        """This daemon, and the servers of registered tools."""
        own = {"name": "toold", "server_name": "toold", "transport": "streamable_http", "url": f"{origin}/mcp"}
        servers = {own["url"]: own}
        for tool in self._library.content.tables(Kind.TOOL).values():
            url = tool["mcp_server_url"]
            if url and tool["active"]:
                name = tool["mcp_server"] or tool["name"]
                server = {"name": name, "server_name": name, "transport": "streamable_http", "url": url}
                servers.setdefault(url, server)
        return [{**server, "endpoint": server["url"]} for server in servers.values()]


def _listed(field: str, entries: list[Any]) -> bytes:
    return _encode({field: entries, "count": len(entries)})


def _created(kind: Kind, entry_id: str, encoded: bytes, etag: str) -> RegistryAnswer:
    names = NAMES[kind]
    identity = {names.id_field: entry_id} if names.makes_id else {}
    created = {"status": "created", **identity, names.entry: msgspec.Raw(encoded)}
    return RegistryAnswer(_encode(created), 200, etag)


def _changed(kind: Kind, entry_id: str, etag: str, **more: Any) -> RegistryAnswer:
    return RegistryAnswer(_encode({"status": "updated", NAMES[kind].id_field: entry_id, **more}), 200, etag)


def _conditional(encoded: bytes, request: RegistryRequest) -> RegistryAnswer:
    etag = etag_of(encoded)
    unchanged = _names(request.if_none_match, etag)
    return RegistryAnswer(b"" if unchanged else encoded, 304 if unchanged else 200, etag)


def _names(header: str | None, etag: str) -> bool:
    """Whether a header with entity tags contains this one."""
    if header is None:
        return False
    tags = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return etag in tags or "*" in tags


def _expected(if_match: str | None) -> Callable[[str], None]:
    def check(etag: str) -> None:
        if if_match is not None and not _names(if_match, etag):
            message = f"the entry has changed: its ETag is {etag}, not {if_match[:200]}; read it again"
            raise RegistryRefusedError(412, message)

    return check


def _only_field(body: object, field: str) -> Any:
    """The value of the body's only field.

    Raises:
        RegistryRefusedError: the body has another form.
    """
    if not isinstance(body, Mapping) or set(body) != {field}:
        raise RegistryRefusedError(422, [field_problem((field,), f"must be the body's only field: {field}")])
    return body[field]
