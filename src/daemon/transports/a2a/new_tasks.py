"""Begins tasks from messages: each becomes one detached call, whose start is stored together with the task.

A repeated message finds its task by the stored message, so it never begins a second task.
"""

import asyncio
import hashlib
import time
from typing import Any, NamedTuple, Protocol

from ....protocol.a2a.a2a_error import A2AError, error_of_call
from ....protocol.a2a.a2a_request import A2AMessage
from ....protocol.a2a.a2a_task import WORKING, user_message
from ....protocol.arguments_digest import whole_digest
from ....protocol.error_codes import CallError, RequestIdConflictError, ResultExpiredError
from ....protocol.json_pieces import LONG_BYTES
from ....protocol.tool_call import Principal, ToolCall
from ....store import A2AEarlier, A2AMessageRow, A2ATaskRow
from ....tools import DETACHED_AGENT_TIMEOUT_S
from ...dispatch import Router, Session, prepared
from ...observability.logging_setup import bind_session
from ...off_loop import off_loop
from ..mcp.mcp_caller import make_label
from .a2a_caller import TRANSPORT, A2ACaller
from .a2a_tasks import A2ATasks
from .task_view import encode_history


class ConversationStarts(Protocol):
    """Begins conversations under ids that the transport chooses. Each method raises ServiceUnavailableError if the
    database cannot be read or written.
    """

    async def begin(self, conversation_id: str, principal: Principal) -> None: ...

    def begin_new(self, conversation_id: str, principal: Principal) -> None: ...

    async def has(self, conversation_id: str, principal: Principal) -> bool: ...


class MessageRecordPort(Protocol):
    """Reads the messages that began tasks. Raises ServiceUnavailableError if the database cannot be read."""

    async def earlier(self, message_key: bytes, conversation_id: str, principal: Principal) -> A2AEarlier: ...


class _Beginning(NamedTuple):
    """A message whose task is being stored."""

    content: bytes
    task_id: asyncio.Future[str]


class NewTasks:
    """Begins the tasks of all principals."""

    def __init__(
        self, router: Router, tasks: A2ATasks, records: MessageRecordPort, conversations: ConversationStarts
    ) -> None:
        self._router = router
        self._tasks = tasks
        self._records = records
        self._conversations = conversations
        # By the key of the message.
        self._beginning: dict[bytes, _Beginning] = {}

    async def begin(self, caller: A2ACaller, message: A2AMessage) -> str:
        """Begins a task for a message and returns the task's id; for a repeated message, returns the id of its task.
        Call it in an asyncio task that is never cancelled.

        Raises:
            A2AError: the message is refused, or an earlier message with its id has different content.
            ServiceUnavailableError: the database cannot be read.
        """
        context_id = message.context_id or _digest(caller.principal.name, caller.agent, message.id)
        place = (caller.principal.name, caller.toolset, caller.agent, context_id, message.id)
        key = hashlib.sha256("\n".join(place).encode()).digest()
        content = await _content(caller, message)
        begun = self._beginning.get(key)
        if begun is not None:
            if begun.content != content:
                raise self._refused(caller, message, RequestIdConflictError())
            return await begun.task_id
        begun = self._beginning[key] = _Beginning(content, asyncio.get_running_loop().create_future())
        try:
            task_id = await self._begin(caller, message, context_id, A2AMessageRow(key=key, content=content))
        except Exception as error:
            begun.task_id.set_exception(error)
            begun.task_id.exception()  # retrieved: usually no other request waits for it
            raise
        finally:
            del self._beginning[key]
        begun.task_id.set_result(task_id)
        return task_id

    async def _begin(self, caller: A2ACaller, message: A2AMessage, context_id: str, new: A2AMessageRow) -> str:
        earlier = await self._records.earlier(new.key, context_id, caller.principal)
        if earlier.task_id is not None:
            if earlier.content != new.content:
                raise self._refused(caller, message, RequestIdConflictError())
            if not await self._tasks.exists(earlier.task_id, caller.principal):
                raise self._refused(caller, message, ResultExpiredError())
            return earlier.task_id
        conversation_id = await self._conversation(caller, message, context_id, stored=earlier.conversation)
        call_id = self._router.detached.next_id()
        row = A2ATaskRow(
            id=call_id,
            principal=caller.principal.name,
            agent=caller.agent,
            context_id=context_id,
            state=WORKING,
            changed_at=time.time(),
            ended=False,
            history=encode_history([user_message(message.id, message.parts, context_id, call_id)]),
            message=new,
        )
        arguments: dict[str, Any] = {"prompt": message.prompt, "continuation_id": conversation_id}
        if message.images:
            arguments["images"] = list(message.images)
        self._tasks.open(row)
        try:
            await self._submit(caller, _call(caller, message, arguments), row)
        except BaseException:
            self._tasks.withdraw(call_id)
            raise
        return call_id

    async def _submit(self, caller: A2ACaller, call: ToolCall, row: A2ATaskRow) -> None:
        session = self._open_session(caller)
        ready = await prepared(self._router.catalog, session, call)
        received = time.monotonic()
        try:
            await self._router.detached.submit(session, ready, row.id, timeout_s=DETACHED_AGENT_TIMEOUT_S, task=row)
        except CallError as error:
            self._router.refuse(session, call, error, received)
            raise error_of_call(error) from error

    async def _conversation(self, caller: A2ACaller, message: A2AMessage, context_id: str, *, stored: bool) -> str:
        """The conversation of a context. Two principals may choose the same id for different contexts."""
        if stored:
            return context_id
        if message.context_id is None:
            self._conversations.begin_new(context_id, caller.principal)
            return context_id
        if await self._conversations.has(context_id, caller.principal):  # its entry was queued during the first check
            return context_id
        conversation_id = _digest(caller.principal.name, context_id)
        await self._conversations.begin(conversation_id, caller.principal)
        return conversation_id

    def _open_session(self, caller: A2ACaller) -> Session:
        session = self._router.sessions.open(
            make_label(caller.client),
            caller.principal,
            caller.client,
            toolset=caller.toolset,
            transport=TRANSPORT,
            streaming=True,
            absent_port=self._router.detached.port,
            usable=caller.access.toolsets,
        )
        bind_session(session.label)
        return session

    def _refused(self, caller: A2ACaller, message: A2AMessage, error: CallError) -> A2AError:
        """Records that a repeated message is refused, and returns the error."""
        session = self._open_session(caller)
        self._router.sessions.unload(session)
        self._router.refuse(session, _call(caller, message, {}), error, time.monotonic())
        return error_of_call(error)


def _call(caller: A2ACaller, message: A2AMessage, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(message.id, caller.agent, arguments, frame_bytes=caller.size, traceparent=caller.traceparent)


async def _content(caller: A2ACaller, message: A2AMessage) -> bytes:
    """The hash of a message's content."""
    content: dict[str, Any] = {"prompt": message.prompt, "images": message.images}
    return await off_loop(whole_digest, content) if caller.size > LONG_BYTES else whole_digest(content)


def _digest(*names: str) -> str:
    """An id in the format of the daemon's ids of conversations."""
    return hashlib.sha256("\n".join((TRANSPORT, *names)).encode()).hexdigest()[:32]
