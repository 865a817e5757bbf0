"""A REST API as a source of tools."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ...protocol.tool_call import Annotations
from ...tools import Tool, ToolContext, ToolOutput, in_tool_thread
from ..address_policy import AddressPolicy
from ..checked_network import CheckedNetwork
from ..operation_filter import OperationSelection
from ..source import RefusedServer, SourceCheck, SourceListener, SourceNote
from ..source_auth import ApiKeyAuth
from ..source_secrets import COMMAND_ENVIRONMENT, unavailable_secrets
from ..source_settings import OpenApiSettings
from .api_caller import ApiCaller
from .api_document import ApiDocumentError
from .api_operation import ApiOperation
from .api_reader import ApiDescription, UnreadableApiError, read_api
from .document_fetch import FetchedDocuments, fetch, have_changed

FILE_POLL_S: Final = 1.0
"""The interval between checks of the document's files for changes."""
_FIRST_RETRY_S: Final = 2.0
_MAX_RETRY_S: Final = 300.0


class _ReadApi(NamedTuple):
    fetched: FetchedDocuments
    tools: Sequence[Tool]
    notes: Sequence[SourceNote]


class OpenApiSource:
    """Publishes a tool per operation of the document, and again when its files change. Implements ``Source``."""

    def __init__(self, name: str, settings: OpenApiSettings) -> None:
        self._name = name
        self._settings = settings
        self._network = CheckedNetwork(AddressPolicy(settings.allow_private))
        self._caller = ApiCaller(name, settings, self._network)
        self._wake = asyncio.Event()

    async def run(self, listener: SourceListener) -> None:
        retry_s = _FIRST_RETRY_S
        read: _ReadApi | None = None
        while True:
            self._wake.clear()
            try:
                fetched = await fetch(self._settings.spec, self._network, self._settings.max_documents)
                # An unchanged API keeps its tools, so that they need not be bound and indexed again.
                if read is None or not fetched.is_same(read.fetched):
                    api = await in_tool_thread(_read, fetched, self._name, self._settings)
                    read = _ReadApi(fetched, [self._tool(operation) for operation in api.operations], api.notes)
            except (ApiDocumentError, UnreadableApiError) as error:
                listener.report_problem(f"source {self._name}: its document cannot be used: {error}")
                with suppress(TimeoutError):
                    async with asyncio.timeout(retry_s):
                        await self._wake.wait()
                retry_s = min(2 * retry_s, _MAX_RETRY_S)
                continue
            retry_s = _FIRST_RETRY_S
            listener.publish(read.tools, read.notes)
            await self._wait_for_change(fetched)

    def refresh(self) -> None:
        self._wake.set()

    async def close(self) -> None:
        await self._network.close()

    async def _wait_for_change(self, fetched: FetchedDocuments) -> None:
        """Waits until a file of these documents changes or a refresh is requested."""
        while not self._wake.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(FILE_POLL_S if fetched.versions else None):
                    await self._wake.wait()
            if await have_changed(fetched):
                return

    def _tool(self, operation: ApiOperation) -> Tool:
        auth = self._settings.auth
        return Tool(
            operation.name,
            operation.description,
            operation.arguments,
            partial(_call, self._caller, operation),
            annotations_of(operation.method),
            timeout_s=self._settings.timeout_s,
            source=self._name,
            credentials=auth.credentials if auth is not None and operation.with_secret else (),
        )


async def _call(
    caller: ApiCaller, operation: ApiOperation, arguments: dict[str, Any], context: ToolContext
) -> ToolOutput | str:
    return await caller.call(operation, arguments, context)


def annotations_of(method: str) -> Annotations:
    """Returns the annotations of an HTTP method (RFC 9110, 9.2): GET is read-only, PUT and DELETE are idempotent."""
    return Annotations(
        read_only_hint=method == "GET",
        destructive_hint=method == "DELETE",
        idempotent_hint=method in {"GET", "PUT", "DELETE"},
        open_world_hint=True,
    )


async def check_openapi(name: str, settings: OpenApiSettings) -> SourceCheck:
    """Reads the document of a source once; the API is not called."""
    network = CheckedNetwork(AddressPolicy(settings.allow_private))
    try:
        fetched = await fetch(settings.spec, network, settings.max_documents)
        api = await in_tool_thread(_read, fetched, name, settings)
        refused = await _refused_servers(api, network)
    except (ApiDocumentError, UnreadableApiError) as error:
        return SourceCheck(problem=str(error))
    finally:
        await network.close()
    return SourceCheck(
        api.title,
        tuple(operation.name for operation in api.operations),
        api.notes,
        excluded=api.excluded,
        missing_secrets=tuple(unavailable_secrets(settings.secrets, environment=COMMAND_ENVIRONMENT)),
        refused_servers=refused,
    )


async def _refused_servers(api: ApiDescription, network: CheckedNetwork) -> tuple[RefusedServer, ...]:
    hosts = sorted({host for operation in api.operations if (host := urlsplit(operation.server).hostname)})
    reasons = await asyncio.gather(*map(network.rejection_reason, hosts))
    return tuple(RefusedServer(host, reason) for host, reason in zip(hosts, reasons, strict=True) if reason)


def _read(fetched: FetchedDocuments, name: str, settings: OpenApiSettings) -> ApiDescription:
    auth = settings.auth
    if auth is None:
        secret_at = None
    else:
        secret_at = (auth.location, auth.name) if isinstance(auth, ApiKeyAuth) else ("header", "authorization")
    return read_api(
        fetched.documents,
        fetched.uri,
        prefix=name,
        absent=fetched.absent,
        base_url=settings.base_url,
        secret_at=secret_at,
        selection=OperationSelection(settings.include, settings.exclude),
    )
