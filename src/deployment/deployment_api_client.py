"""Requests to the systems that deployments use, and the errors for their answers."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from ..protocol.error_codes import ServiceUnavailableError, ToolExecutionError
from ..sources import JsonAnswer, JsonServer, UnusableAnswerError
from .deploy_settings import DeploySettings

MAX_ANSWER_BYTES: Final = 1024**2

_MAY_PASS: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS})
"""The statuses of temporary failures. After a conflict, the next attempt checks what exists."""
_ADVICE: Final[Mapping[int, str]] = {
    400: "it does not accept the request",
    401: "it does not accept the credentials",
    403: "the credentials lack a permission",
}


class DeploymentApiClient:
    """One system with JSON over HTTP."""

    def __init__(
        self,
        name: str,
        base: str,
        settings: DeploySettings,
        token: Callable[[], Awaitable[str]],
    ) -> None:
        """``name`` names the system in errors. ``token`` returns the token that is sent as ``Authorization:
        Bearer``.
        """
        self._name = name
        self._token = token
        self._server = JsonServer(
            base.rstrip("/"),
            table="[deploy]",
            key=None,
            timeout_s=settings.request_timeout_s,
            allow_private=settings.allow_private,
        )

    def __repr__(self) -> str:
        return f"<DeploymentApiClient {self._name}>"

    async def get(self, path: str) -> dict[str, Any] | None:
        """The object at this path; None if there is none."""
        return await self._ask("GET", path, None, absent=True)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a POST."""
        return await self._ask("POST", path, body, absent=False) or {}

    async def delete(self, path: str) -> dict[str, Any] | None:
        """The answer to a DELETE; None if nothing existed."""
        return await self._ask("DELETE", path, None, absent=True)

    async def close(self) -> None:
        """Close the connections. Connections of running requests are closed when the requests end."""
        await self._server.close()

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, absent: bool
    ) -> dict[str, Any] | None:
        """
        Raises:
            ServiceUnavailableError: the system cannot be reached now; it may have carried out the request.
            ToolExecutionError: the system refuses the request.
        """
        token = await self._token()
        try:
            answer = await self._server.send(method, path, token=token, content=body, max_bytes=MAX_ANSWER_BYTES)
            if answer.status == HTTPStatus.NOT_FOUND and absent:
                return None
            if answer.status in range(200, 300):
                return _table(answer)
        except UnusableAnswerError as error:
            raise ServiceUnavailableError(f"{self._name}: {error}.", executed="maybe", transient=True) from error
        # Without the text of the answer, which may quote a key.
        message = f"{self._name} answered HTTP {answer.status} to {method} {path.partition('?')[0]}"
        if answer.status in _MAY_PASS or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise ServiceUnavailableError.content_free(f"{message}.", executed="maybe", transient=True)
        advice = _ADVICE.get(answer.status)
        raise ToolExecutionError.content_free(f"{message}{f': {advice}' if advice else ''}.", executed="no")


def _table(answer: JsonAnswer) -> dict[str, Any]:
    value = answer.decoded() if answer.body else {}
    if not isinstance(value, dict):
        raise UnusableAnswerError("its answer is not a JSON object")
    return value
