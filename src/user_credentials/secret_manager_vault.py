"""Credentials of users in Google Secret Manager, through its REST API (v1). Other programs may write them too.

Each secret has the fields of one credential as a JSON object. A replaced version is destroyed.
"""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
import structlog

from ..protocol.error_codes import CallError, ServiceUnavailableError
from ..protocol.user_credential import CredentialField
from ..sources import GoogleToken, JsonServer, UnusableAnswerError
from .credential_values import MAX_SERVICES, CredentialEntry
from .credential_vault import too_many_services
from .secret_names import name_filter, secret_id, service_of
from .vault_settings import PLACE, SecretManagerSettings

MAX_ANSWER_BYTES: Final = 1024**2
MAX_PAGES: Final = 8
"""The maximum number of pages to read from the list of a user's secrets, or of a secret's versions."""
PAGE_SIZE: Final = 250
_LABELS: Final = {"made-by": "toold"}
"""The label of created secrets, by which operators can distinguish them from those of other programs. The daemon never
reads it."""
_ABSENT: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST})
"""The answers to a read of the latest version if there is no secret or version, or if the version is disabled or
destroyed."""

_log = structlog.get_logger(__name__)


class SecretManagerVault:
    """Implements ``CredentialVault``."""

    def __init__(self, settings: SecretManagerSettings, page: str | None) -> None:
        self.page = page
        self._settings = settings
        self._token = GoogleToken(settings.account)
        self._server = JsonServer(
            settings.url.rstrip("/"),
            table=PLACE,
            key=None,
            timeout_s=settings.timeout_s,
            allow_private=settings.allow_private,
        )
        self._secrets = f"/v1/projects/{settings.project}/secrets"
        self._changing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<SecretManagerVault {self._settings.project}>"

    async def value(self, principal: str, wanted: CredentialField) -> str | None:
        fields = await self._fields(principal, wanted.service)
        return None if fields is None else fields.get(wanted.field)

    async def put(self, principal: str, service: str, fields: Mapping[str, str]) -> CredentialEntry:
        name = self._path(principal, service)
        payload = {"payload": {"data": base64.b64encode(msgspec.json.encode(fields)).decode()}}
        async with self._changing:
            services = await self._services(principal)
            if service not in services:
                if len(services) >= MAX_SERVICES:
                    raise too_many_services()
                query = urlencode({"secretId": secret_id(self._settings.name, principal, service)})
                body = {"replication": {"automatic": {}}, "labels": _LABELS}
                await self._ask("POST", f"{self._secrets}?{query}", body, accepted={HTTPStatus.CONFLICT})
            added = await self._ask("POST", f"{name}:addVersion", payload)
            await self._destroy_others(name, str((added or {}).get("name", "")).rpartition("/")[2])
        return CredentialEntry(service, tuple(fields), None)

    async def entries(self, principal: str) -> list[CredentialEntry]:
        stored = [await self.entry(principal, service) for service in await self._services(principal)]
        return [entry for entry in stored if entry is not None]

    async def entry(self, principal: str, service: str) -> CredentialEntry | None:
        fields = await self._fields(principal, service)
        return None if fields is None else CredentialEntry(service, tuple(fields), None)

    async def remove(self, principal: str, service: str) -> bool:
        async with self._changing:
            removed = await self._ask("DELETE", self._path(principal, service), accepted={HTTPStatus.NOT_FOUND})
        return removed is not None

    async def prepare(self) -> None:
        """Does nothing."""

    async def close(self) -> None:
        await self._server.close()

    def _path(self, principal: str, service: str) -> str:
        return f"{self._secrets}/{quote(secret_id(self._settings.name, principal, service), safe='')}"

    async def _fields(self, principal: str, service: str) -> dict[str, str] | None:
        """The fields of a credential; None if it is not stored."""
        answer = await self._ask("GET", f"{self._path(principal, service)}/versions/latest:access", accepted=_ABSENT)
        if answer is None:
            return None
        try:
            payload = base64.b64decode(answer["payload"]["data"], validate=True)
            return msgspec.json.decode(payload, type=dict[str, str])
        except (KeyError, TypeError, binascii.Error, msgspec.DecodeError):
            _log.error("a secret is not a JSON object with texts; it must be entered again", service=service)
            return None

    async def _services(self, principal: str) -> list[str]:
        """The services of a principal, sorted."""
        template = self._settings.name
        listed, complete = await self._pages(self._secrets, "secrets", {"filter": name_filter(template, principal)})
        if not complete:
            most = MAX_PAGES * PAGE_SIZE
            raise _unavailable(
                f"More than {most} secrets of the project have names as those of this user, too many to list; "
                "the operator removes some, or keeps credentials in a separate project"
            )
        ids = [str(secret.get("name", "")).rpartition("/")[2] for secret in listed]
        services = [service_of(template, principal, listed_id) for listed_id in ids]
        return sorted(service for service in services if service is not None)

    async def _destroy_others(self, name: str, current: str) -> None:
        """Destroys the versions before the current one, which is used even if this fails."""
        try:
            versions, complete = await self._pages(f"{name}/versions", "versions", {"filter": "state:ENABLED"})
            for version in versions:
                number = str(version.get("name", "")).rpartition("/")[2]
                if number and number != current:
                    await self._ask("POST", f"{name}/versions/{quote(number, safe='')}:destroy", {})
            if not complete:
                _log.warning("a credential has too many earlier versions; the next change destroys more of them")
        except CallError as error:
            _log.warning("an earlier version of a credential was not destroyed", reason=error.summary)

    async def _pages(self, path: str, field: str, query: Mapping[str, str]) -> tuple[list[dict[str, Any]], bool]:
        """The rows of the first ``MAX_PAGES`` pages, and whether there are no further pages."""
        listed: list[dict[str, Any]] = []
        token = ""
        for _ in range(MAX_PAGES):
            page = urlencode({**query, "pageSize": str(PAGE_SIZE), "pageToken": token})
            answer = await self._ask("GET", f"{path}?{page}")
            rows = (answer or {}).get(field, [])
            listed += [row for row in rows if isinstance(row, dict)]
            token = str((answer or {}).get("nextPageToken", ""))
            if not token:
                return listed, True
        return listed, False

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        accepted: frozenset[int] | set[int] = frozenset(),
    ) -> dict[str, Any] | None:
        """The answer; None for a status in ``accepted``.

        Raises:
            ServiceUnavailableError: Secret Manager cannot be reached, or refuses the request.
        """
        try:
            token = await self._token.read()
        except CallError as error:
            _log.error("no access token for Secret Manager", reason=error.message)
            raise _unavailable("The daemon has no access token for it") from None
        try:
            answer = await self._server.send(method, path, token=token, content=body, max_bytes=MAX_ANSWER_BYTES)
            if answer.status in range(200, 300):
                value = answer.decoded() if answer.body else {}
                return value if isinstance(value, dict) else {}
        except UnusableAnswerError as error:
            raise _unavailable(f"Secret Manager: {error}") from None
        if answer.status in accepted:
            return None
        # Without the text of the answer, which may quote a value.
        raise _unavailable(f"Secret Manager answered HTTP {answer.status}")


def _unavailable(reason: str) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(
        f"The stored credentials cannot be used now. {reason}.", executed="maybe"
    )
