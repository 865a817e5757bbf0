"""A call of a remote agent: sends a message, follows its task, and pauses where the agent asks for input.

The call is an orchestration call, and each message that it sends is a journalled child call. So a run that continues
after a pause or a restart knows its task's id, and reads the task again.
"""

import asyncio
import base64
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from pydantic import Field

from ...protocol.a2a.remote_card import RemoteInterface
from ...protocol.a2a.remote_request import outgoing_message
from ...protocol.a2a.remote_task import RemoteMessage, RemotePart
from ...protocol.backoff import backoff_s
from ...protocol.error_codes import (
    CallError,
    CallTimeoutError,
    InvalidArgumentsError,
    NotFoundError,
    ToolExecutionError,
    error_from_wire,
)
from ...protocol.input_request import CallPausedError, InputRequest
from ...protocol.terminal_text import one_line, terminal_safe
from ...protocol.tool_call import Json
from ...tools import Arguments, OrchestrationContext, Tool, ToolContext, ToolOutput, tool
from ..source_settings import A2ASettings
from .card_fetch import TrustedCard
from .remote_answer import RemoteAnswerState, output_of
from .remote_client import RemoteClient, SentMessage
from .remote_failures import RemoteLostError, shown, task_failure, unknown_outcome
from .remote_http import RemoteStream

MAX_QUESTIONS: Final = 50
"""The maximum number of questions in one call. An agent that asks more would never end."""
MAX_FILES: Final = 20
MAX_FILES_BYTES: Final = 20 * 1024**2
"""The maximum total size of a message's files, which are in memory until the message is sent."""
FIRST_POLL_S: Final = 0.5
MAX_POLL_S: Final = 5.0
_POLLS_AT_FIRST: Final = 3
MAX_SUBSCRIPTIONS: Final = 3
"""How often a call subscribes to its task again after its stream broke. Afterwards it polls the task."""
_MARGIN_S: Final = 0.1
"""A call ends this long before its deadline, so that the caller learns the task's id."""
_PROGRESS_CHARS: Final = 500
_QUESTION_CHARS: Final = 16_000


class RemoteAgentArguments(Arguments):
    """A message to a remote agent."""

    prompt: str = Field(min_length=1, description="The task or message.")
    data: dict[str, Any] | None = Field(default=None, description="Structured data for the agent.")
    files: list[str] = Field(default=[], max_length=MAX_FILES, description="Paths of files in the workspace to send.")
    continuation_id: str | None = Field(default=None, description="Conversation to continue, from an earlier answer.")


class RemoteStepArguments(Arguments):
    """A step of a call of a remote agent."""


@tool("a2a_note", read_only=True, open_world=False)
async def a2a_note(_arguments: RemoteStepArguments, _context: ToolContext) -> ToolOutput:
    """Record a value on which the rest of a call of a remote agent depends."""
    raise NotImplementedError  # a call replaces the function


@tool("a2a_send", read_only=False, destructive=True, open_world=True, timeout_s=1800.0)
async def a2a_send(_arguments: RemoteStepArguments, _context: ToolContext) -> ToolOutput:
    """Send a message to a remote agent."""
    raise NotImplementedError  # a call replaces the function


@tool("a2a_send_again", read_only=False, destructive=True, open_world=True, idempotent=True, timeout_s=1800.0)
async def a2a_send_again(_arguments: RemoteStepArguments, _context: ToolContext) -> ToolOutput:
    """Send a message, which may be a repetition, to a remote agent that deduplicates messages."""
    raise NotImplementedError  # a call replaces the function


class RemoteCall:
    """One run of one call."""

    def __init__(
        self,
        source: str,
        settings: A2ASettings,
        client: RemoteClient,
        trusted: TrustedCard,
        context: OrchestrationContext,
    ) -> None:
        self._source = source
        self._settings = settings
        self._client = client
        self._interface: RemoteInterface = trusted.interface
        self._streams = trusted.card.streaming
        self._context = context
        self._stream: RemoteStream | None = None
        self._sent_text = ""
        self._unreachable = False
        self._sending: asyncio.Task[SentMessage] | None = None
        self.state = RemoteAnswerState(source, settings.max_answer_bytes)

    async def cancel_task(self) -> None:
        """Cancels the task if it still runs; waits for its id if the message was just sent.

        Raises:
            CallError: the agent did not cancel the task.
        """
        if self._sending is not None:
            sent = await self._sending
            self.state.task_id = ""
            self.state.take(sent.event)
            if sent.stream is not None:
                await sent.stream.close()
        status = self.state.status
        over = self.state.message is not None or (status is not None and status.ends and status.outlook != "input")
        if self.state.task_id and not over:
            await self._client.cancel(self._interface, self.state.task_id)

    async def run(self, arguments: RemoteAgentArguments, skill: str, context_id: str) -> dict[str, Json]:
        """Returns the answer's parts, and the fields for the conversation's state.

        Raises:
            CallPausedError: the agent asks for input.
            CallError: the agent failed, or its answer is unknown.
        """
        begun = await self._note("message", {"message_id": self._message_id(), "context_id": context_id})
        message_id = begun["message_id"]

        async def send() -> dict[str, Json]:
            parts = await self._parts(arguments)  # not in a continued run, because the files may be deleted
            message = outgoing_message(message_id, parts, context_id=begun["context_id"], skill=skill)
            return await self._send(message)

        sent = await self._step("send", send, again=self._settings.deduplicates)
        mark = ""
        for number in range(1, MAX_QUESTIONS + 1):
            if "parts" in sent:
                return sent
            decision = self._context.decision(f"input-{number}")
            if decision is None:
                await self._follow(sent["task_id"], mark)
                if self.state.status is None or self.state.status.outlook != "input":
                    return self._answered(sent["task_id"])
                await self._note(f"asked-{number}", {"mark": self.state.status.mark})
                raise self._pause(number)
            self.state.task_id = self.state.task_id or sent["task_id"]
            if decision.decision == "expired":
                raise ToolExecutionError.content_free(
                    f"{self._source} asked for input, and no one answered in time; its task was cancelled.",
                    details={"task_id": shown(sent["task_id"])},
                )
            mark = (await self._note(f"asked-{number}", {"mark": ""}))["mark"]
            sent = await self._reply(number, f"{message_id}-{number}", sent, decision.text or "", mark)
        raise ToolExecutionError.content_free(f"{self._source} asked for input more than {MAX_QUESTIONS} times.")

    def drop(self) -> None:
        """Abandons a message that is being sent."""
        if self._sending is not None:
            self._sending.cancel()

    async def close(self) -> None:
        """Ends the stream."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            await stream.close()

    def _message_id(self) -> str:
        return f"toold-{self._context.call_id}"[:180]

    async def _parts(self, arguments: RemoteAgentArguments) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = [{"text": arguments.prompt}]
        if arguments.data is not None:
            parts.append({"data": arguments.data})
        left = MAX_FILES_BYTES
        for path in arguments.files:
            file = await self._context.files.read_bytes(path, MAX_FILES_BYTES)
            left -= len(file.content)
            if left < 0:
                raise InvalidArgumentsError(f"The files have more than {MAX_FILES_BYTES // 1024**2} MiB together.")
            raw = await asyncio.to_thread(base64.b64encode, file.content)
            parts.append({"raw": raw.decode(), "filename": file.name.rpartition("/")[2]})
        return parts

    async def _note(self, name: str, value: Mapping[str, Json]) -> dict[str, Any]:
        """Stores a value in the journal; a continued run gets the value of its first run."""

        async def note(_: RemoteStepArguments, __: ToolContext) -> ToolOutput:
            return ToolOutput("noted", dict(value))

        return await self._child(a2a_note.with_function(note), name)

    async def _step(self, name: str, send: Any, *, again: bool) -> dict[str, Any]:
        async def step(_: RemoteStepArguments, __: ToolContext) -> ToolOutput:
            return ToolOutput("sent", await send())

        return await self._child((a2a_send_again if again else a2a_send).with_function(step), name)

    async def _child(self, step: Tool, name: str) -> dict[str, Any]:
        result = await self._context.call(step, {}, name=name, journal=True)
        if result.error is not None:
            raise error_from_wire(result.error)
        return dict(result.structured) if isinstance(result.structured, dict) else {}

    async def _send(self, message: dict[str, Any]) -> dict[str, Json]:
        """Sends a message until the agent has answered it; repeats it only to an agent that deduplicates messages."""
        attempt = 0
        while True:
            try:
                # Not cancelled with the call: the agent may create a task, whose id is needed to cancel it.
                self._sending = asyncio.create_task(
                    self._client.send(self._interface, message, stream=self._streams), name=f"send to {self._source}"
                )
                sent = await asyncio.shield(self._sending)
                self._sending = None
                break
            except RemoteLostError as error:
                self._sending = None
                if not self._settings.deduplicates:
                    task_id = str(message.get("taskId", ""))
                    raise unknown_outcome(self._source, task_id, f"{error.message}") from error
                await self._wait(attempt)
                attempt += 1
        self._stream = sent.stream
        self.state.task_id = ""  # an agent may continue in a new task
        self._take(sent.event)
        if isinstance(sent.event, RemoteMessage):
            await self.close()
            return {"parts": [list(part) for part in sent.event.parts], "context_id": sent.event.context_id}
        return {"task_id": self.state.task_id, "context_id": self.state.context_id}

    async def _reply(
        self, number: int, message_id: str, sent: Mapping[str, Any], text: str, mark: str
    ) -> dict[str, Any]:
        """Answers a question of the agent, unless its status has changed, so that it already has the answer."""
        task_id = str(sent["task_id"])

        async def reply() -> dict[str, Json]:
            known = await self._client.get(self._interface, task_id)
            self._take(known)
            if known.status.outlook != "input" or (mark and known.status.mark != mark):
                return {"task_id": task_id, "context_id": known.context_id}
            message = outgoing_message(
                message_id, [{"text": text}], context_id=known.context_id or sent["context_id"], task_id=task_id
            )
            return await self._send(message)

        answered = await self._step(f"reply-{number}", reply, again=bool(mark))
        return {"context_id": sent["context_id"]} | answered

    async def _follow(self, task_id: str, mark: str) -> None:
        """Follows a task until it has ended or waits for its client. A status with ``mark`` precedes the answer.

        Raises:
            CallError: the task cannot be followed to its end.
        """
        self.state.task_id = self.state.task_id or task_id
        try:
            async with asyncio.timeout(max(0.0, self._context.remaining() - _MARGIN_S)):
                with suppress(RemoteLostError):
                    await self._read_stream(mark)
                if self._streams:
                    await self._subscribe(task_id, mark)
                await self._poll(task_id, mark)
        except TimeoutError:
            if self._unreachable:
                raise unknown_outcome(self._source, task_id, "The agent could not be reached any longer.") from None
            raise CallTimeoutError.content_free(
                f"{self._source} did not finish its task {shown(task_id)} in time; toold asks it to cancel the task.",
                executed="maybe",
                details={"task_id": shown(task_id)},
            ) from None

    def _waits(self, mark: str) -> bool:
        """Whether the task has ended or asks a new question."""
        status = self.state.status
        is_old = status is not None and status.outlook == "input" and bool(mark) and status.mark == mark
        return self.state.ended and not is_old

    async def _read_stream(self, mark: str) -> None:
        stream = self._stream
        try:
            while stream is not None and not self._waits(mark):
                event = await self._client.next_event(self._interface, stream)
                if event is None:
                    return
                self._take(event)
        finally:
            await self.close()

    async def _subscribe(self, task_id: str, mark: str) -> None:
        """Follows the task by new streams, as long as the agent opens them."""
        for attempt in range(MAX_SUBSCRIPTIONS):
            if self._waits(mark):
                return
            if attempt:
                await self._wait(attempt)
            try:
                subscribed = await self._client.subscribe(self._interface, task_id)
            except CallError:
                return  # the task may have ended, or the agent restarts
            self._stream = subscribed.stream
            self._take(subscribed.event)
            with suppress(RemoteLostError):
                await self._read_stream(mark)

    async def _poll(self, task_id: str, mark: str) -> None:
        number = failed = 0
        while not self._waits(mark):
            try:
                self._take(await self._client.get(self._interface, task_id))
                failed, self._unreachable = 0, False
            except NotFoundError:
                raise unknown_outcome(self._source, task_id, "The agent does not know its task any longer.") from None
            except CallError as error:
                # An agent that restarts or is busy still has the task.
                if not error.transient:
                    raise unknown_outcome(self._source, task_id, error.message) from error
                failed, self._unreachable = failed + 1, True
                if failed == 1:
                    self._context.progress(f"{self._source} cannot be reached; its task is read again.")
                await self._wait(failed)
                continue
            if not self._waits(mark):
                number += 1
                await asyncio.sleep(min(MAX_POLL_S, FIRST_POLL_S * 2 ** max(0, number - _POLLS_AT_FIRST)))

    async def _wait(self, attempt: int) -> None:
        draw = random.random()  # noqa: S311 - jitter, not a secret
        await asyncio.sleep(backoff_s(attempt, draw, base_s=FIRST_POLL_S, cap_s=MAX_POLL_S))

    def _take(self, event: Any) -> None:
        """Processes an event, and passes on its text or progress."""
        piece = self.state.take(event)
        status = self.state.status
        if self._context.streaming:
            if piece is None:
                text = self.state.text()
                piece = text[len(self._sent_text) :] if text.startswith(self._sent_text) else ""
            if piece:
                self._sent_text += piece
                self._context.stream(piece)
        said = getattr(event, "status", None)
        if status is not None and said is not None and status.message is not None and not status.ends:
            self._context.progress(one_line(status.message.text, _PROGRESS_CHARS) or f"{self._source} is working")

    def _pause(self, number: int) -> CallPausedError:
        status, task_id = self.state.status, self.state.task_id
        message = None if status is None else status.message
        asked = "" if message is None else message.text
        if message is not None and not asked:
            asked = "\n".join(msgspec.json.encode(part.content).decode() for part in message.parts)
        question = terminal_safe(asked[:_QUESTION_CHARS], keep="\n") or "It did not say what it needs."
        text = f"{self._source} asks (task {shown(task_id)}): {question}"
        request = InputRequest(f"input-{number}", "question", text=text)
        return CallPausedError((request,), time.time() + self._settings.answer_within_s)

    def _answered(self, task_id: str) -> dict[str, Json]:
        """Returns the answer of a task that has ended.

        Raises:
            CallError: the task ended without an answer.
        """
        status = self.state.status
        if self.state.message is None and status is not None and status.outlook != "completed":
            raise task_failure(self._source, task_id, status)
        return {
            "parts": [list(part) for part in self.state.parts()],
            "task_id": task_id,
            "context_id": self.state.context_id,
        }


def output_from(answered: Mapping[str, Any], about: Mapping[str, Json]) -> ToolOutput:
    """Converts the answer of ``RemoteCall.run`` to the tool's output."""
    parts = tuple(RemotePart(*part) for part in answered["parts"])
    task = {"task_id": answered["task_id"]} if "task_id" in answered else {}
    return output_of(parts, {**task, **about})
