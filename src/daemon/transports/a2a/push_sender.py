"""Sends the events of A2A's tasks to the addresses that clients configured, each at least once and in order.

The stored events are the outbox: each configuration has the number of the last event that was delivered. So a crash
loses no event; an event whose answer was lost is sent again.
"""

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol

import httpcore
import httpx
import msgspec
import structlog

from ....protocol.a2a.a2a_error import invalid_field
from ....protocol.a2a.a2a_version import task_to_0_3
from ....protocol.a2a.push_config import PushConfig
from ....protocol.error_codes import CallError
from ....protocol.json_pieces import LONG_BYTES
from ....protocol.tool_call import Principal, stored_principal
from ....sources import AddressPolicy, CheckedNetwork, ForbiddenAddressError
from ....store import A2AEvent, A2APushDeleted, A2APushProgress, A2APushRow
from ....version import __version__
from ...observability.logging_setup import error_text, exception_text
from ...off_loop import off_loop
from ...persistence.sealed_texts import SealedTexts
from .a2a_tasks import A2ATasks
from .push_address import host_of, push_address
from .push_turns import PushTurns
from .task_view import TaskView

SEND_TIMEOUT_S: Final = 15.0
"""The timeout of one notification. The specification recommends 10 to 30 s."""
FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 300.0
MAX_ATTEMPTS: Final = 300
"""Attempts for one event, which take about a day; then the configuration is deleted."""
_LONGEST_WAIT_S: Final = 60.0
MAX_TURN_S: Final = 30.0
"""After this time, the next event of a configuration waits until others have been served."""
_LOOKED_AT: Final = 16
"""The number of due configurations that are read for each principal: more than may be sent, since some hosts may be
busy."""
_ALLOWING: Final = "a2a_push_hosts with its name"
"""How to allow an address that is not public."""
_REASON_CHARS: Final = 200
_GONE: Final = 410

_log = structlog.get_logger("toold.a2a")


class PushRecordPort(Protocol):
    """Stores configurations. Each method raises ServiceUnavailableError if the database cannot be read or written."""

    async def write(self, entry: A2APushRow | A2APushDeleted | A2APushProgress) -> None: ...

    async def of_task(self, task_id: str) -> list[A2APushRow]: ...

    async def pending(self, of_each: int) -> list[tuple[A2APushRow, str, str]]: ...

    async def count(self, principal: Principal) -> int: ...

    async def events(self, task_id: str, after: int) -> list[A2AEvent]: ...


class PushSender:
    """Sends the notifications of all tasks."""

    def __init__(self, records: PushRecordPort, tasks: A2ATasks, secrets: SealedTexts, hosts: tuple[str, ...]) -> None:
        """``hosts``: names and patterns of the hosts that may be notified; a host that is named exactly may also have a
        private address and no TLS.
        """
        self._records = records
        self._tasks = tasks
        self.secrets = secrets
        self._hosts = hosts
        private = tuple(host for host in hosts if "*" not in host)
        self._network = CheckedNetwork(AddressPolicy(private, setting=_ALLOWING))
        self._sending: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._turns = PushTurns()
        # Configurations whose turn ended during a search for due events, so that the search has outdated rows of them.
        self._ended: set[tuple[str, str]] = set()
        self._wake = asyncio.Event()
        tasks.on_events = self.wake

    def __repr__(self) -> str:
        return f"<PushSender sending={len(self._sending)}>"

    async def check(self, config: PushConfig) -> None:
        """Checks the address of a configuration.

        Raises:
            A2AError: it must not be notified.
        """
        host = host_of(push_address(config.url, self._hosts))
        reason = await self._network.rejection_reason(host)
        if reason is not None:
            why = f"has a host that must not be notified: {reason}; {_ALLOWING} can allow it"
            raise invalid_field("url", why)

    def wake(self) -> None:
        """Searches for more events to send."""
        self._wake.set()

    async def run(self) -> None:
        """Sends due events, as long as the daemon runs."""
        while True:
            self._wake.clear()
            wait_s = _LONGEST_WAIT_S
            try:
                wait_s = await self._start_due()
            except CallError as error:
                _log.warning("push notifications cannot be read", reason=error_text(error))
            except Exception:  # noqa: BLE001 - without this loop no notification would be sent
                _log.exception("push notifications cannot be sent")
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()

    async def close(self) -> None:
        """Ends the requests in progress; their events are sent again after the next start."""
        for sending in tuple(self._sending.values()):
            sending.cancel()
        if self._sending:
            await asyncio.wait(self._sending.values())
        await self._network.close()

    async def _start_due(self) -> float:
        """Starts to send due events; returns the seconds until more are due."""
        now = time.time()
        self._ended.clear()
        pending = await self._records.pending(_LOOKED_AT)
        due = [push for push in pending if push[0].next_at <= now and (push[0].task, push[0].id) not in self._ended]
        for row, principal, agent in self._turns.take(due):
            sending = asyncio.create_task(self._send(row, principal, agent))
            self._sending[row.task, row.id] = sending
            sending.add_done_callback(partial(self._sent, row))
        later = [push[0].next_at - now for push in pending if push[0].next_at > now]
        return min([_LONGEST_WAIT_S, *later])

    def _sent(self, row: A2APushRow, _: object) -> None:
        del self._sending[row.task, row.id]
        self._ended.add((row.task, row.id))
        self._turns.end(row)
        self._wake.set()

    async def _send(self, row: A2APushRow, principal: str, agent: str) -> None:
        """Sends the events of one configuration until one fails, there are no more, or its turn is over."""
        ends_at = time.monotonic() + MAX_TURN_S
        try:
            for event in await self._records.events(row.task, row.sent):
                body = None if event.partial else await self._body(row, event, principal, agent)
                failure = None if body is None else await self._post(row, body)
                if failure is not None:
                    await self._failed(row, failure)
                    return
                row = row._replace(sent=event.number, attempts=0)
                await self._records.write(A2APushProgress(row.task, row.id, row.sent, 0, 0.0))
                if time.monotonic() > ends_at:
                    return
        except Exception as error:  # noqa: BLE001 - a configuration without a next attempt would be sent at once
            await self._failed_with(row, error)

    async def _failed_with(self, row: A2APushRow, error: Exception) -> None:
        """Counts an error as a failed attempt."""
        try:
            await self._failed(row, exception_text(error, _REASON_CHARS))
        except Exception as failure:  # noqa: BLE001 - the same
            _log.warning("push notification not sent", task=row.task, reason=exception_text(failure, _REASON_CHARS))
            await asyncio.sleep(1.0)  # the database failed: do not try again at once

    async def _failed(self, row: A2APushRow, failure: str) -> None:
        attempts = row.attempts + 1
        if attempts >= MAX_ATTEMPTS or failure == str(_GONE):
            _log.warning("push notifications end", task=row.task, reason=failure, attempts=attempts)
            await self._records.write(A2APushDeleted(row.task, row.id))
            return
        wait_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** min(attempts - 1, 20))
        _log.info("push notification failed", task=row.task, reason=failure, attempts=attempts)
        await self._records.write(A2APushProgress(row.task, row.id, row.sent, attempts, time.time() + wait_s))

    async def _body(self, row: A2APushRow, event: A2AEvent, principal: str, agent: str) -> bytes | None:
        """The notification of an event: in 1.0 the event, in 0.3 the task if its state is new; None if nothing is
        sent."""
        if row.version == "1.0":
            return event.body
        if b'"statusUpdate"' not in event.body[:20]:
            return None
        view = await self._tasks.get(row.task, agent, stored_principal(principal))
        return await off_loop(_task_0_3, view) if view.size > LONG_BYTES else _task_0_3(view)

    async def _post(self, row: A2APushRow, body: bytes) -> str | None:
        """Returns why a notification was not accepted; None if it was."""
        headers = self.secrets.opened(row.secrets, f"{row.task}/{row.id}")
        if headers is None:
            return str(_GONE)  # the key has changed; a notification is never sent without its headers
        media_type = "application/a2a+json" if row.version == "1.0" else "application/json"
        request = httpx.Request(
            "POST",
            push_address(row.url, self._hosts),  # again: the setting may have changed
            headers={"content-type": media_type, "user-agent": f"toold/{__version__}", **headers},
            content=body,
        )
        try:
            async with (
                asyncio.timeout(SEND_TIMEOUT_S),
                self._network.acquire() as connection,
                connection.answer(request, _nothing) as answer,
            ):
                status = answer.status_code  # the body is not read
        except ForbiddenAddressError as error:
            return str(error)
        except TimeoutError:
            return f"no answer within {SEND_TIMEOUT_S:g} s"
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            return type(error).__name__
        return None if 200 <= status < 300 else str(status)


def _task_0_3(view: TaskView) -> bytes:
    return msgspec.json.encode(task_to_0_3(view.as_task()))


def _nothing(*_: Any) -> None:
    pass
