"""Runs a synchronous SDK in threads, with its HTTP on the event loop, so that a call can be stopped at any time.

The SDK blocks its thread until the response arrives. A thread that waits for a socket cannot be interrupted, but a
thread that waits for a future can. So the SDK's HTTP client passes each request to an asynchronous client on the loop
and waits for its result. Stopping the call cancels the request, and the thread then unwinds.
"""

import asyncio
import concurrent.futures
import contextvars
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import httpx

from .call_connections import wait_until_done

T = TypeVar("T")


class SdkThreadStopped(BaseException):
    """Ends the SDK's work in its thread, because the call was stopped."""


class ThreadedCall:
    """One SDK call: the work on the loop for which its thread waits, and a way to stop it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.stopped = False
        """Written only on the loop, like ``_task``."""
        self._task: asyncio.Task[Any] | None = None

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """In the thread: runs ``work`` on the loop and waits for its result.

        Raises:
            SdkThreadStopped: the call was stopped.
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
        """On the loop: cancels the work for which the thread waits, and prevents new work."""
        self.stopped = True
        if self._task is not None:
            self._task.cancel()


class LoopTransport(httpx.BaseTransport):
    """The transport of a synchronous ``httpx.Client`` for one call."""

    def __init__(self, call: ThreadedCall, client: httpx.AsyncClient) -> None:
        self._call = call
        self._client = client
        self._response: httpx.Response | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._call.wait(self._send(request))
        return httpx.Response(response.status_code, headers=response.headers, stream=_LoopStream(self._call, response))

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the last response, names in lower case; empty before the first response."""
        return {} if self._response is None else dict(self._response.headers)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        self._response = await self._client.send(request, stream=True)
        return self._response

    def close(self) -> None:
        """Closes the connection of a response that was not read to its end."""
        if self._response is not None and not self._call.stopped:
            self._call.wait(self._response.aclose())


class _LoopStream(httpx.SyncByteStream):
    """The bytes of a response, read on the loop."""

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
    """The thread pool for one SDK's calls."""

    def __init__(self, size: int, name: str) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(size, thread_name_prefix=name)

    async def run(self, call: ThreadedCall, work: Callable[[], T]) -> T:
        """Runs ``work`` in a thread. On cancellation it stops the call and returns once the thread has finished.

        The thread and its work on the loop get the caller's context variables, so that logs name the call.
        """
        future = call.loop.run_in_executor(self._pool, contextvars.copy_context().run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            call.stop()
            await wait_until_done(future)
            raise

    def close(self) -> None:
        """Accepts no more work. Does not wait for threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
