"""A synchronous client in a thread whose HTTP runs on the event loop."""

import asyncio
import contextlib
import contextvars
import gzip
import threading
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from toold.providers.sdk_threads import LoopTransport, SdkThreads, SdkThreadStopped, ThreadedCall


@pytest.fixture
async def threads() -> AsyncIterator[SdkThreads]:
    threads = SdkThreads(1, "test")
    yield threads
    threads.close()


def call() -> ThreadedCall:
    return ThreadedCall(asyncio.get_running_loop())


async def test_coroutines_from_the_thread_run_on_the_loop(threads: SdkThreads) -> None:
    """A coroutine from the thread runs on the loop, and the thread receives its result or exception."""
    threaded_call = call()

    async def where() -> str:
        return threading.current_thread().name

    async def fail() -> None:
        raise KeyError("lost")

    assert await threads.run(threaded_call, lambda: threaded_call.wait(where())) == threading.current_thread().name
    with pytest.raises(KeyError, match="lost"):
        await threads.run(threaded_call, lambda: threaded_call.wait(fail()))


async def test_cancelling_frees_the_thread_at_once(threads: SdkThreads) -> None:
    """When ``run`` returns after a cancel, the blocked thread is free and its coroutine has ended."""
    threaded_call, waiting, cancelled = call(), asyncio.Event(), asyncio.Event()

    async def for_ever() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    running = asyncio.create_task(threads.run(threaded_call, lambda: threaded_call.wait(for_ever())))
    async with asyncio.timeout(30):
        await waiting.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert cancelled.is_set()
    assert await threads.run(call(), threading.active_count) > 0  # the pool has one thread: it is free


async def test_run_returns_only_after_the_thread(threads: SdkThreads) -> None:
    """Regardless of how often it is cancelled, ``run`` waits for code that cannot be stopped, because it still holds
    its permit.
    """
    started, release = threading.Event(), threading.Event()

    def stubborn() -> None:
        started.set()
        release.wait(30)

    running = asyncio.create_task(threads.run(call(), stubborn))
    assert await asyncio.to_thread(started.wait, 30)
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not running.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_stopped_call_starts_no_further_work(threads: SdkThreads) -> None:
    """A stopped call refuses further work in its thread, even if the SDK suppresses exceptions."""
    threaded_call = call()
    threaded_call.stop()

    def retrying() -> None:
        for _ in range(3):
            with contextlib.suppress(Exception):  # as SDKs do between attempts
                threaded_call.wait(asyncio.sleep(0))

    with pytest.raises(SdkThreadStopped):
        await threads.run(threaded_call, retrying)


async def test_context_variables_are_propagated(threads: SdkThreads) -> None:
    """Code in the thread, and its coroutines on the loop, see the context variables of the call."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("this call")
    threaded_call = call()

    async def on_the_loop() -> str:
        return variable.get()

    assert await threads.run(threaded_call, lambda: (variable.get(), threaded_call.wait(on_the_loop()))) == (
        "this call",
        "this call",
    )


async def test_response_passes_the_transport_unchanged(threads: SdkThreads) -> None:
    """Status, headers and a compressed body pass the transport as over a direct connection."""

    async def vendor(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        headers = {"x-seen": request.headers["x-sent"], "content-encoding": "gzip"}
        await Response(gzip.compress(await request.body() * 2), 418, headers)(scope, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(vendor)) as carrier:
        threaded_call = call()

        def post() -> httpx.Response:
            with httpx.Client(transport=LoopTransport(threaded_call, carrier)) as client:
                return client.post("http://vendor.test/", content=b"ab", headers={"x-sent": "yes"})

        response = await threads.run(threaded_call, post)
    assert (response.status_code, response.headers["x-seen"], response.content) == (418, "yes", b"abab")
