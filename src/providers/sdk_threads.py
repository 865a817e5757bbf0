"""A synchronous SDK in threads of its own, its HTTP on the event loop: so a thread can be freed at any moment.

The SDK blocks its thread until the answer is there. A thread that waits for a socket cannot be interrupted; one that
waits for a future can. So the SDK's HTTP client hands each request to an asynchronous client on the loop, and waits
for what that returns: stopping the call cancels the request, and the thread unwinds once that has ended.
"""

import asyncio
import concurrent.futures
import contextvars
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import httpx

from .call_connections import ended

T = TypeVar("T")


class SdkThreadStopped(BaseException):
    """Nobody waits for this call any more: ends the SDK's work in its thread."""


class ThreadedCall:
    """One call of an SDK: what its thread waits for on the loop, and how to stop it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.stopped = False
        """Written on the loop alone, like the task."""
        self._task: asyncio.Task[Any] | None = None

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """In the thread: run ``work`` on the loop and wait until it has ended.

        Raises:
            Stopped: the call was stopped, before or meanwhile.
        """
        try:
            return asyncio.run_coroutine_threadsafe(self._unless_stopped(work), self.loop).result()
        except concurrent.futures.CancelledError:
            raise SdkThreadStopped from None

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T:
        if self.stopped:
            work.close()
            raise asyncio.CancelledError
        self._task = asyncio.current_task()
        return await work

    def stop(self) -> None:
        """On the loop: end what the thread waits for, so that it goes; and let it begin nothing more."""
        self.stopped = True
        if self._task is not None:
            self._task.cancel()


class LoopTransport(httpx.BaseTransport):
    """What a synchronous ``httpx.Client`` sends through, for one call."""

    def __init__(self, call: ThreadedCall, client: httpx.AsyncClient) -> None:
        self._call = call
        self._client = client
        self._response: httpx.Response | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._call.wait(self._send(request))
        return httpx.Response(response.status_code, headers=response.headers, stream=_LoopStream(self._call, response))

    @property
    def headers(self) -> dict[str, str]:
        """Of the last answer, names in lower case; empty before there is one."""
        return {} if self._response is None else dict(self._response.headers)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        self._response = await self._client.send(request, stream=True)
        return self._response

    def close(self) -> None:
        """Close the connection of an answer that nobody reads to its end."""
        if self._response is not None and not self._call.stopped:
            self._call.wait(self._response.aclose())


class _LoopStream(httpx.SyncByteStream):
    """An answer's bytes, each piece awaited on the loop."""

    def __init__(self, call: ThreadedCall, response: httpx.Response) -> None:
        self._call = call
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        pieces = self._response.aiter_raw()
        while (piece := self._call.wait(_next(pieces))) is not None:
            yield piece

    def close(self) -> None:
        if not self._call.stopped:
            self._call.wait(self._response.aclose())


async def _next(pieces: Any) -> bytes | None:
    return await anext(pieces, None)


class SdkThreads:
    """A pool for one SDK's calls."""

    def __init__(self, size: int, name: str) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(size, thread_name_prefix=name)

    async def run(self, call: ThreadedCall, work: Callable[[], T]) -> T:
        """Run ``work`` in a thread. Cancelled, it stops the call, and returns once the thread has returned.

        The thread, and what it hands to the loop, have the caller's context variables, so that logs name the call.
        """
        future = call.loop.run_in_executor(self._pool, contextvars.copy_context().run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            call.stop()
            await ended(future)
            raise

    def close(self) -> None:
        """Take no more work; does not wait for threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
