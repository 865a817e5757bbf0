"""The tasks of A2A: the view that clients of A2A have of detached calls.

The current state of a task is always read from its call; the stored state is the last one that was read. Each change is
an event in the database. Streams are sent from the database, so a stream can begin after any event, even after a
restart.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import structlog

from ....protocol.a2a.a2a_error import task_not_found
from ....protocol.a2a.a2a_request import A2AMessage
from ....protocol.a2a.a2a_task import text_update, user_message
from ....protocol.a2a.a2a_version import is_final, is_interrupted
from ....protocol.a2a.named_results import handles_in
from ....protocol.error_codes import CallError
from ....protocol.tool_call import Principal, stored_principal
from ....store import A2AEvent, A2ATaskPage, A2ATaskQuery, A2ATaskRow
from ....tools import CallInfo, is_long
from ...dispatch import Router
from ...observability.logging_setup import error_text
from ...off_loop import off_loop
from .result_parts import ResultParts
from .task_view import TaskView, encode_history, messages_of, view_of, with_events

CHUNK_WINDOW_S: Final = 0.25
"""Pieces of an answer that arrive within this time are one event."""
MAX_STREAMED_CHARS: Final = 256 * 1024
"""The number of characters of a task's answer that are sent in pieces; the rest is sent only with the whole answer."""
ALIVE_S: Final = 15.0
"""How often a silent stream shows that it is alive."""


class _Status(msgspec.Struct, frozen=True, gc=False):
    state: str


class _StatusUpdate(msgspec.Struct, frozen=True, gc=False):
    status: _Status


_event_of: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_update_of: Final = msgspec.json.Decoder(_StatusUpdate).decode
_log = structlog.get_logger("toold.a2a")


class TaskRecordPort(Protocol):
    """Stores tasks. Each method raises ServiceUnavailableError if the database cannot be read or written."""

    async def save(self, row: A2ATaskRow, *, soon: bool = True) -> None: ...

    async def find(self, task_id: str, principal: Principal) -> A2ATaskRow | None: ...

    async def events(self, task_id: str, after: int) -> list[A2AEvent]: ...

    async def page(self, query: A2ATaskQuery) -> A2ATaskPage: ...

    async def unfinished(self) -> list[A2ATaskRow]: ...


class ListedTasks(NamedTuple):
    """A page of tasks."""

    views: list[TaskView]
    total: int
    """The number of tasks on all pages."""
    last: A2ATaskRow | None
    """The last task of this page, as stored; None if there is no further page."""


class _LiveTask:
    """A task that has not ended."""

    __slots__ = ("changed", "ended", "lock", "pieces", "row", "streamed")

    def __init__(self, row: A2ATaskRow) -> None:
        self.row = row
        self.changed = asyncio.Event()
        """Set when the task has new events, and then replaced by another ``asyncio.Event``."""
        self.ended: TaskView | None = None
        """The final state of the task. Set before it is stored."""
        self.lock = asyncio.Lock()
        """Held during a change, so that events are stored in order."""
        self.pieces: list[str] = []
        """Pieces of its answer that have not been stored yet."""
        self.streamed = 0
        """The number of characters of its answer that were accepted for streaming."""

    def notify(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class A2ATasks:
    """The tasks of all principals. ``shared``: other nodes may continue a task whose call has paused here."""

    def __init__(self, router: Router, records: TaskRecordPort, files: ResultParts, *, shared: bool = False) -> None:
        self._shared = shared
        self._router = router
        self._records = records
        self._files = files
        self._live: dict[str, _LiveTask] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._closing = False
        self.on_events: Callable[[], None] | None = None
        """Called when events were stored."""
        port = router.detached.port
        port.on_change, port.on_chunk, port.on_resume = self._changed, self._piece, self._resuming

    def __repr__(self) -> str:
        return f"<A2ATasks unfinished={len(self._live)}>"

    async def load(self) -> None:
        """Loads the tasks that the previous process left unfinished.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        for row in await self._records.unfinished():
            self._live.setdefault(row.id, _LiveTask(row))
        for task_id in tuple(self._live):  # a call may have ended just before the daemon did
            self._changed(task_id)

    def close(self) -> None:
        """At shutdown: requests that wait for a task get its current state, and streams end."""
        self._closing = True
        for live in self._live.values():
            live.notify()

    def open(self, row: A2ATaskRow) -> None:
        """Adds a new task, which is stored with the start of its call."""
        self._live[row.id] = _LiveTask(msgspec.structs.replace(row, message=None))

    def withdraw(self, task_id: str) -> None:
        """Removes a new task whose call was refused."""
        self._live.pop(task_id, None)

    async def get(self, task_id: str, agent: str, principal: Principal) -> TaskView:
        """The principal's task of this agent, in its current state.

        Raises:
            A2AError: there is none.
            ServiceUnavailableError: the database cannot be read.
        """
        row = await self._find(task_id, principal)
        if row is None or row.agent != agent:
            raise task_not_found(task_id)
        return await self._look(row)

    async def exists(self, task_id: str, principal: Principal) -> bool:
        """Whether the principal's task is still stored.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        return await self._find(task_id, principal) is not None

    async def page(self, query: A2ATaskQuery, *, results: bool) -> ListedTasks:
        """A page of tasks with approximately at most ``query.max_bytes``. Without ``results``, ended tasks have no
        artifacts and messages.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        page = await self._records.page(query)
        views: list[TaskView] = []
        left = query.max_bytes
        for stored in page.rows:
            row = stored
            if query.with_history and not row.ended:
                row = await self._find(row.id, stored_principal(row.principal)) or row
            view = TaskView(row) if row.ended and not results else await self._look(row)
            left -= view.size
            if views and left < 0:
                break
            views.append(view)
        more = page.more or len(views) < len(page.rows)
        return ListedTasks(views, page.total, page.rows[len(views) - 1] if more else None)

    async def wait(self, task_id: str, agent: str, principal: Principal) -> TaskView:
        """Waits until the task has ended or waits for its client, and returns it; at shutdown, returns its current
        state.

        Raises:
            A2AError: there is none.
            ServiceUnavailableError: the database cannot be read.
        """
        while True:
            live = self._live.get(task_id)
            changed = None if live is None else live.changed
            view = await self.get(task_id, agent, principal)
            if view.waits or live is None or changed is None or self._closing:
                return view
            await changed.wait()
            if live.ended is not None:
                return live.ended

    async def follow(self, task_id: str, after: int) -> AsyncGenerator[tuple[int, dict[str, msgspec.Raw]] | None]:
        """The events of a task after a number, until it ends or waits for its client. Yields None approximately every
        ``ALIVE_S`` without an event.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        while True:
            live = self._live.get(task_id)
            changed = None if live is None else live.changed
            events = await self._records.events(task_id, after)
            for event in events:
                body = _event_of(event.body)
                yield event.number, body
                after = event.number
                state = _update_of(body["statusUpdate"]).status.state if "statusUpdate" in body else ""
                if is_final(state) or is_interrupted(state):
                    return
            if events:
                continue
            if changed is None or self._closing:
                return
            try:
                async with asyncio.timeout(ALIVE_S):
                    await changed.wait()
            except TimeoutError:
                yield None

    async def text_so_far(self, view: TaskView) -> str:
        """The part of an unfinished task's answer that its events contain.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        pieces: list[str] = []
        after, last = 0, view.row.last_event
        while after < last:
            events = await self._records.events(view.row.id, after)
            if not events:
                break
            after = events[-1].number
            stored = [msgspec.json.decode(event.body) for event in events if event.partial and event.number <= last]
            pieces += [event["artifactUpdate"]["artifact"]["parts"][0]["text"] for event in stored]
        return "".join(pieces)

    async def add_message(self, view: TaskView, message: A2AMessage) -> None:
        """Adds the task's request for input, if it has one, and a message of its client to the task's history.

        Raises:
            ServiceUnavailableError: the database cannot be written.
        """
        live = self._live.get(view.row.id)
        if live is None:
            row = await self._find(view.row.id, stored_principal(view.row.principal)) if self._shared else None
            if row is None or row.ended:
                return
            live = _LiveTask(row)
        await self._find(view.row.id, stored_principal(view.row.principal))  # with its history
        async with live.lock:
            sent = user_message(message.id, message.parts, live.row.context_id, live.row.id)
            asked = [] if view.message is None else [view.message]
            history: list[dict[str, Any] | msgspec.Raw] = [*messages_of(live.row.history), *asked, sent]
            await self._save(live, msgspec.structs.replace(live.row, history=encode_history(history)))

    async def _resuming(self, call_id: str) -> None:
        """Loads the task of a call that another node has run before, so that its events are stored here."""
        if call_id in self._live or not self._shared:
            return
        for row in await self._records.unfinished():
            if row.id == call_id:
                self._live[call_id] = _LiveTask(row)

    def _changed(self, call_id: str) -> None:
        if call_id in self._live:
            self._start(self._refresh(call_id))

    def _piece(self, call_id: str, text: str) -> None:
        live = self._live.get(call_id)
        if live is None or live.streamed >= MAX_STREAMED_CHARS:
            return
        live.streamed += len(text)
        live.pieces.append(text)
        if len(live.pieces) == 1:
            self._start(self._send_pieces(call_id))

    def _start(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _send_pieces(self, task_id: str) -> None:
        """Stores the pieces of ``CHUNK_WINDOW_S`` as one event."""
        await asyncio.sleep(CHUNK_WINDOW_S)
        live = self._live.get(task_id)
        if live is None or self._closing:
            return
        async with live.lock:
            pieces, live.pieces = live.pieces, []
            if live.row.ended or not pieces:
                return
            text = "".join(pieces)
            update = text_update(task_id, live.row.context_id, text, append=live.streamed > sum(map(len, pieces)))
            try:
                await self._save(live, with_events(live.row, [update], partial=True))
            except CallError as error:
                _log.warning("pieces of an answer not sent", task=task_id, reason=error_text(error))
        live.notify()

    async def _refresh(self, task_id: str) -> None:
        live = self._live.get(task_id)
        if live is None or self._closing:  # the next start checks all tasks
            return
        try:
            await self._look(live.row)
        except CallError as error:
            _log.warning("state of a task not stored", task=task_id, reason=error_text(error))
            live.notify()  # waiting requests get the error when they read the task

    async def _find(self, task_id: str, principal: Principal) -> A2ATaskRow | None:
        live = self._live.get(task_id)
        if live is None:
            return await self._records.find(task_id, principal)
        if live.row.principal != principal.name:
            return None
        if not live.row.history:  # as ``load`` left it
            stored = await self._records.find(task_id, principal)
            if stored is None:
                return None
            if not live.row.history:
                live.row = msgspec.structs.replace(live.row, history=stored.history)
        return live.row

    async def _look(self, row: A2ATaskRow) -> TaskView:
        """The task in the current state of its call; stores the state and its events if the state has changed."""
        live = self._live.get(row.id)
        principal = stored_principal(row.principal)
        if live is None:
            return await self._viewed(row, await self._router.lookup.look_up(principal, row.id))
        if live.ended is not None:
            return live.ended
        async with live.lock:
            view = await self._viewed(live.row, await self._router.lookup.look_up(principal, row.id))
            if view.row.ended and not live.row.ended:
                return await self._end(live, view)
            if view.row != live.row:
                await self._save(live, view.row)
                view = msgspec.structs.replace(view, row=live.row)
                live.notify()
            if self._shared and view.requests:
                # Any node may continue the call, so only the database has its state.
                self._live.pop(row.id, None)
        return view

    async def _end(self, live: _LiveTask, view: TaskView) -> TaskView:
        """Answers the requests that wait for the end before the end is stored. The journal already has the end of the
        call, so after a crash the next start finds the same state.
        """
        live.ended = ended = msgspec.structs.replace(view, row=msgspec.structs.replace(view.row, new_events=()))
        live.notify()
        try:
            await self._save(live, view.row, soon=False)
        except CallError:
            live.ended = None  # the next read stores the end
            raise
        self._live.pop(live.row.id, None)
        live.notify()
        return ended

    async def _save(self, live: _LiveTask, row: A2ATaskRow, *, soon: bool = True) -> None:
        await self._records.save(row, soon=soon)
        live.row = msgspec.structs.replace(row, new_events=())
        if self.on_events is not None and row.new_events:
            self.on_events()

    async def _viewed(self, row: A2ATaskRow, info: CallInfo) -> TaskView:
        """The task according to the state of its call; a long result is encoded outside of the event loop."""
        if info.result is None:
            return view_of(row, info, time.time())
        long = is_long(info.result.value)
        handles = await off_loop(handles_in, info.result) if long else handles_in(info.result)
        files = await self._files.parts(stored_principal(row.principal), row.agent, handles) if handles else []
        if files or long:
            return await off_loop(view_of, row, info, time.time(), files)
        return view_of(row, info, time.time())
