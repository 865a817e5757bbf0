"""The routes of users' credentials, ``/api/v1/user/credentials``. Callers reach only their own credentials, and no
answer or audit row contains a value."""

import secrets
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeVar

import msgspec

from ....audit import audit_row_of
from ....protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError
from ....protocol.tool_call import Metadata, Timings, ToolCall, ToolResult
from ....store import CallRow
from ....user_credentials import CredentialEntry, CredentialVault, check_service, read_fields
from .platform_route import PlatformAnswer, PlatformRequest, PlatformRoute

T = TypeVar("T")

_PATH: Final = "/api/v1/user/credentials"
_BODY_FIELDS: Final = frozenset({"service_type", "credentials"})


class UserCredentialRoutes:
    """Stores, lists and removes the caller's credentials."""

    def __init__(
        self, vault: CredentialVault, *, record: Callable[[CallRow], None], changed: Callable[[], None]
    ) -> None:
        """``record`` takes the audit row of each change; ``changed`` is called after a credential was stored."""
        self._vault = vault
        self._record = record
        self._changed = changed

    @property
    def routes(self) -> list[PlatformRoute]:
        return [
            PlatformRoute("POST", _PATH, self._put, takes_body=True),
            PlatformRoute("GET", _PATH, self._list),
            PlatformRoute("GET", f"{_PATH}/{{service}}", self._show),
            PlatformRoute("DELETE", f"{_PATH}/{{service}}", self._remove),
        ]

    async def _put(self, request: PlatformRequest) -> PlatformAnswer:
        unknown = sorted(request.body.keys() - _BODY_FIELDS)
        if unknown:
            problem = "is not a field; there are service_type and credentials"
            raise InvalidArgumentsError(problem, details={"fields": {name[:64]: problem for name in unknown[:8]}})
        service = check_service(request.body.get("service_type"))
        fields = read_fields(request.body.get("credentials"))
        storing = self._vault.put(request.principal.name, service, fields)
        entry = await self._audited(request, "set", service, tuple(fields), storing)
        self._changed()
        return PlatformAnswer(_shown(entry), HTTPStatus.CREATED)

    async def _list(self, request: PlatformRequest) -> PlatformAnswer:
        entries = await self._vault.entries(request.principal.name)
        return PlatformAnswer({"credentials": [_shown(entry) for entry in entries]})

    async def _show(self, request: PlatformRequest) -> PlatformAnswer:
        service = check_service(request.path["service"])
        entry = await self._vault.entry(request.principal.name, service)
        if entry is None:
            raise _absent(service)
        return PlatformAnswer(_shown(entry))

    async def _remove(self, request: PlatformRequest) -> PlatformAnswer:
        service = check_service(request.path["service"])
        if not await self._audited(request, "remove", service, (), self._vault.remove(request.principal.name, service)):
            raise _absent(service)
        return PlatformAnswer({"service_type": service, "deleted": True})

    async def _audited(
        self, request: PlatformRequest, operation: str, service: str, fields: tuple[str, ...], change: Awaitable[T]
    ) -> T:
        """Returns the result of a change, and writes an audit row with the names but no values."""
        began, started_at = time.monotonic(), time.time()
        error: CallError | None = None
        try:
            return await change
        except CallError as failure:
            error = failure
            raise
        finally:
            metadata = Metadata(round((time.monotonic() - began) * 1000, 3), Timings())
            arguments = {"operation": operation, "service_type": service, "fields": list(fields)}
            row = audit_row_of(
                ToolCall(operation, "user_credentials", arguments, None, request.size),
                ToolResult(metadata, error=None if error is None else error.to_tool_error()),
                call_id=f"credentials-{secrets.token_hex(8)}",
                started_at=started_at,
                transport="platform",
                principal=request.principal,
                session_id="",
                session_label="",
                client=request.client,
                message=_done(operation, service, fields) if error is None else error.summary,
            )
            self._record(row)


def _done(operation: str, service: str, fields: tuple[str, ...]) -> str:
    return f"{operation} {service} ({', '.join(fields)})" if fields else f"{operation} {service}"


def _shown(entry: CredentialEntry) -> dict[str, object]:
    return {**msgspec.to_builtins(entry), "exists": True}


def _absent(service: str) -> NotFoundError:
    return NotFoundError(f"You have no credential for {service}.")
