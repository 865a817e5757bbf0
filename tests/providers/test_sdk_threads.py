"""A synchronous client in a thread, its HTTP on the loop."""

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


async def test_work_waits_for_the_loop(threads: SdkThreads) -> None:
    """A coroutine that the thread hands over runs on the loop, and its result or exception comes back."""
    one = call()

    async def where() -> str:
        return threading.current_thread().name

    async def fail() -> None:
        raise KeyError("lost")

    assert await threads.run(one, lambda: one.wait(where())) == threading.current_thread().name
    with pytest.raises(KeyError, match="lost"):
        await threads.run(one, lambda: one.wait(fail()))


async def test_cancelling_frees_the_thread_at_once(threads: SdkThreads) -> None:
    """A thread that waits for ever is free again when ``run`` returns, and what it waited for has ended."""
    one, waiting, cancelled = call(), asyncio.Event(), asyncio.Event()

    async def for_ever() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    running = asyncio.create_task(threads.run(one, lambda: one.wait(for_ever())))
    async with asyncio.timeout(30):
        await waiting.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert cancelled.is_set()
    assert await threads.run(call(), threading.active_count) > 0  # the pool has one thread: it is free


async def test_run_returns_only_when_the_thread_has(threads: SdkThreads) -> None:
    """However often it is cancelled, ``run`` waits for code that cannot be stopped: its permit is still in use."""
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


async def test_a_stopped_call_starts_nothing_more(threads: SdkThreads) -> None:
    """Work of a call that was stopped before is refused in its thread, also where the SDK swallows exceptions."""
    one = call()
    one.stop()

    def retrying() -> None:
        for _ in range(3):
            with contextlib.suppress(Exception):  # as SDKs do between attempts
                one.wait(asyncio.sleep(0))

    with pytest.raises(SdkThreadStopped):
        await threads.run(one, retrying)


async def test_context_variables_go_along(threads: SdkThreads) -> None:
    """What is logged in the thread, or on the loop for it, still knows which call it is for."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("this call")
    one = call()

    async def on_the_loop() -> str:
        return variable.get()

    assert await threads.run(one, lambda: (variable.get(), one.wait(on_the_loop()))) == ("this call", "this call")


async def test_an_answer_is_carried_whole(threads: SdkThreads) -> None:
    """Status, headers and a compressed body pass through the transport as if the client had its own connection."""

    async def vendor(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        headers = {"x-seen": request.headers["x-sent"], "content-encoding": "gzip"}
        await Response(gzip.compress(await request.body() * 2), 418, headers)(scope, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(vendor)) as carrier:
        one = call()

        def post() -> httpx.Response:
            with httpx.Client(transport=LoopTransport(one, carrier)) as client:
                return client.post("http://vendor.test/", content=b"ab", headers={"x-sent": "yes"})

        response = await threads.run(one, post)
    assert (response.status_code, response.headers["x-seen"], response.content) == (418, "yes", b"abab")
