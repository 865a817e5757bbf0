"""A client of one remote agent: sends messages, and reads and cancels tasks, over the interface in its card."""

from typing import Any, Final, NamedTuple

from ...protocol.a2a.remote_card import RemoteInterface
from ...protocol.a2a.remote_request import (
    RemoteHttpRequest,
    cancel_request,
    get_request,
    send_request,
    subscribe_request,
)
from ...protocol.a2a.remote_task import (
    RemoteEvent,
    RemoteTask,
    UnreadableAgentAnswerError,
    read_event,
    read_remote_task,
)
from ...protocol.error_codes import CallError
from .remote_failures import http_failure, rpc_failure, unreadable
from .remote_http import RemoteAnswer, RemoteHttp, RemoteStream

_HTTP_ERRORS: Final = {"TASK_NOT_FOUND": -32001, "INVALID_ARGUMENT": -32602}


class SentMessage(NamedTuple):
    """The first event of an agent's answer, and the stream of further events, if the agent streams."""

    event: RemoteEvent
    stream: RemoteStream | None


class RemoteClient:
    """Raises ``CallError`` for all failures; ``RemoteLostError`` if the agent may have the request."""

    def __init__(self, http: RemoteHttp, max_answer_bytes: int) -> None:
        self._http = http
        self._max_bytes = max_answer_bytes

    @property
    def _source(self) -> str:
        return self._http.source

    async def send(self, interface: RemoteInterface, message: dict[str, Any], *, stream: bool) -> SentMessage:
        """Sends a message. The caller closes the stream."""
        request = send_request(interface, message, stream=stream)
        if not stream:
            return SentMessage(self._event(await self._result(interface, await self._ask(request))), None)
        return await self._begin_stream(interface, request)

    async def subscribe(self, interface: RemoteInterface, task_id: str) -> SentMessage:
        """Follows a task that has not ended. The caller closes the stream."""
        return await self._begin_stream(interface, subscribe_request(interface, task_id))

    async def _begin_stream(self, interface: RemoteInterface, request: RemoteHttpRequest) -> SentMessage:
        answered = await self._http.stream(request)
        if isinstance(answered, RemoteAnswer):
            return SentMessage(self._event(await self._result(interface, answered)), None)
        try:
            event = await self.next_event(interface, answered)
        except BaseException:
            await answered.close()
            raise
        if event is None:
            await answered.close()
            raise unreadable(self._source, "its stream has no events")
        return SentMessage(event, answered)

    async def next_event(self, interface: RemoteInterface, stream: RemoteStream) -> RemoteEvent | None:
        """The next event of a stream; None at its end."""
        data = await stream.next_event()
        if data is None:
            return None
        value = await self._http.decoded(data)
        return self._event(self._rpc_result(value) if interface.binding == "JSONRPC" else value)

    async def get(self, interface: RemoteInterface, task_id: str) -> RemoteTask:
        """Reads the current state of a task."""
        result = await self._result(interface, await self._ask(get_request(interface, task_id)))
        try:
            return read_remote_task(result)
        except UnreadableAgentAnswerError as error:
            raise unreadable(self._source, str(error)) from None

    async def cancel(self, interface: RemoteInterface, task_id: str) -> None:
        """Cancels a task."""
        await self._result(interface, await self._ask(cancel_request(interface, task_id)))

    async def _ask(self, request: RemoteHttpRequest) -> RemoteAnswer:
        return await self._http.ask(request, max_bytes=self._max_bytes)

    def _event(self, value: object) -> RemoteEvent:
        try:
            return read_event(value)
        except UnreadableAgentAnswerError as error:
            raise unreadable(self._source, str(error)) from None

    async def _result(self, interface: RemoteInterface, answer: RemoteAnswer) -> Any:
        """The result in an answer."""
        failed = not 200 <= answer.status < 300
        try:
            value = await self._http.decoded(answer.body)
        except CallError:
            if failed:
                raise http_failure(self._source, answer.status, answer.headers.get("retry-after")) from None
            raise
        if failed and (answer.status in {401, 403, 429} or answer.status >= 500 or not _has_error(value)):
            raise http_failure(self._source, answer.status, answer.headers.get("retry-after"))
        if interface.binding == "JSONRPC":
            return self._rpc_result(value)
        if failed:
            error = value["error"]
            code, message = _rest_code(error, answer.status), str(error.get("message", ""))
            raise rpc_failure(self._source, code, message)
        return value

    def _rpc_result(self, value: Any) -> Any:
        if _has_error(value):
            error = value["error"]
            code = error.get("code")
            raise rpc_failure(self._source, code if isinstance(code, int) else 0, str(error.get("message", "")))
        if not isinstance(value, dict) or "result" not in value:
            raise unreadable(self._source, "it is not JSON-RPC")
        return value["result"]


def _has_error(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("error"), dict)


def _rest_code(error: dict[str, Any], status: int) -> int:
    """A2A's code for an error of HTTP+JSON, by the reason in its details."""
    details = error.get("details")
    reasons = [each.get("reason") for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    for reason in (*reasons, error.get("status")):
        if isinstance(reason, str) and reason in _HTTP_ERRORS:
            return _HTTP_ERRORS[reason]
    return status
