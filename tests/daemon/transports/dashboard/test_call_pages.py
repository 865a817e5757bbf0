"""The pages of running and ended calls."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from tests.waiting import until
from toold.protocol.error_codes import ERROR_CLASSES, CallError, ErrorCode
from websockets.asyncio.client import connect

from .conftest import Browser, DashboardPort

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<img src=x onerror=alert(1)>\u202e\u0007"


@asynccontextmanager
async def running_chat(
    port: DashboardPort, token: str | None = None
) -> AsyncIterator[tuple[str, asyncio.Task[object]]]:
    """A call that runs until it is cancelled: its id and its task."""
    client = port.caller() if token is None else port.caller(token)
    async with client:
        before = {call.id for call in port.daemon.router.calls}
        task: asyncio.Task[object] = asyncio.create_task(client.call("chat", {"prompt": "[[sim:delay=600]]"}))
        await until(lambda: bool({call.id for call in port.daemon.router.calls} - before))
        ((call_id),) = {call.id for call in port.daemon.router.calls} - before
        try:
            yield call_id, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_running_call_is_shown_and_cancelled(port: DashboardPort, browser: Browser) -> None:
    """Its page and the page Now show it; Cancel ends it with CANCELLED, and the action is in the audit."""
    await port.daemon.store.flush()
    earlier = (await browser.page("/ui/calls?tool=dashboard:cancel")).count("dashboard:cancel</a>")
    async with running_chat(port) as (call_id, task):
        assert f'id="call-{call_id}"' in await browser.page("/ui/now")
        assert f'data-live-call="/ui/live/{call_id}"' in await browser.page(f"/ui/calls/{call_id}")
        assert (await browser.act(f"/ui/calls/{call_id}/cancel", hx_request="true")).status_code == 204
        with pytest.raises(CallError) as cancelled:
            await task
        assert cancelled.value.code == "CANCELLED"
    again = await browser.act(f"/ui/calls/{call_id}/cancel")
    assert again.status_code == 404
    assert again.headers["toold-problem"] == "This call is not running; it may have ended."
    await port.daemon.store.flush()
    shown = await browser.page("/ui/calls?tool=dashboard:cancel")
    assert shown.count("dashboard:cancel</a>") == earlier + 2


async def test_a_failed_call_says_why(port: DashboardPort, browser: Browser) -> None:
    """The list has the recorded text of the error; the page of a call without one has the meaning of its code."""
    async with port.caller() as client:
        for tool, arguments in (("describe_tools", {"names": ["no_such"]}), ("describe_tools", {"names": 7})):
            with pytest.raises(CallError):
                await client.call(tool, arguments)
    await port.daemon.store.flush()
    listed = await browser.page("/ui/calls?outcome=error&tool=describe_tools")
    found = re.findall(r'<a href="(/ui/calls/[^"]+)">describe_<wbr>tools</a>', listed)
    rows = await port.daemon.store.audit.ended_calls("local", 2, tool="describe_tools")
    assert len(found) >= len(rows) == 2
    assert {row.message is None for row in rows} == {True, False}
    for path, row in zip(found, rows, strict=False):
        page = unescape(re.sub("</?code>", "`", await browser.page(path)))
        advice = ERROR_CLASSES[ErrorCode(row.outcome)].advice
        assert advice in page
        if row.message is None:
            assert "The audit has no text of this error" in page
            assert "executed: no The call had no effect." in re.sub("</?strong>", "", page)
        else:
            assert row.message in unescape(listed)
            assert row.message in page


async def test_the_page_of_a_call_has_its_result(port: DashboardPort, browser: Browser, guest: Browser) -> None:
    """The principal of a call sees a result that the daemon still has, and a failed call's error in its own words;
    others see that they may not. A result that its client has confirmed is said not to be kept.
    """
    async with connect(port.daemon.address().url) as socket:

        async def ask(frame: dict[str, object]) -> dict[str, Any]:
            await socket.send(json.dumps(frame))
            answer: dict[str, Any] = json.loads(await socket.recv())
            return answer

        assert (await ask({"op": "hello", "session_id": "results", "token": port.guest_token}))["ok"]
        text = {"text": f"said {HOSTILE}"}
        await ask({"op": "call_tool", "request_id": "a", "name": "echo", "arguments": text})
        await ask({"op": "call_tool", "request_id": "b", "name": "describe_tools", "arguments": {"names": 7}})
        steps = [{"id": "one", "tool_name": "chat", "args": {"prompt": "of a child"}}]
        await ask({"op": "call_tool", "request_id": "c", "name": "execute_pipeline", "arguments": {"steps": steps}})
        await port.daemon.store.flush()
        pages = {row.tool: f"/ui/calls/{row.id}" for row in await port.daemon.store.audit.ended_calls("token:guest", 4)}
        result = (await guest.page(pages["echo"])).partition(">Result<")[2]
        assert "said &lt;img src=x onerror=alert(1)&gt;" in result
        assert "names" in (await guest.page(pages["describe_tools"])).partition('class="problem"')[2]
        assert "<pre" in (await guest.page(pages["chat"])).partition(">Result<")[2]  # a child call, from the journal
        hidden = (await browser.page(pages["echo"])).partition(">Result<")[2]
        assert "The call belongs to token:guest." in hidden
        assert "The audit records the shape of arguments" in await browser.page(pages["echo"])
        assert "said &lt;img" not in hidden
        await socket.send(json.dumps({"op": "acknowledge", "request_ids": ["a"]}))
        await ask({"op": "call_tool", "request_id": "d", "name": "echo", "arguments": {"text": "later"}})
        assert "This result is not kept." in await guest.page(pages["echo"])


async def test_others_calls_are_hidden(port: DashboardPort, guest: Browser) -> None:
    """A principal without the operator right sees, finds and cancels its own calls only."""
    async with running_chat(port) as (call_id, _):
        assert call_id not in await guest.page("/ui/now")
        assert (await guest.http.get(f"/ui/calls/{call_id}")).status_code == 404
        assert (await guest.act(f"/ui/calls/{call_id}/cancel")).status_code == 404
        assert call_id in {call.id for call in port.daemon.router.calls}
    async with port.caller() as client:
        await client.call("echo", {"text": "of the operator"})
    await port.daemon.store.flush()
    (of_operator,) = await port.daemon.store.audit.ended_calls("local", 1, tool="echo")
    assert of_operator.id not in await guest.page("/ui/calls?principal=local")
    async with running_chat(port, port.guest_token) as (call_id, _):
        assert call_id in await guest.page("/ui/now")
        assert (await guest.act(f"/ui/calls/{call_id}/cancel")).status_code == 303


async def test_hostile_text_is_inert(port: DashboardPort, browser: Browser) -> None:
    """Names and errors of clients are escaped, without control and direction characters."""
    async with port.caller() as client:
        with pytest.raises(CallError):
            await client.call(HOSTILE, {})
    await port.daemon.store.flush()
    for page in (
        await browser.page("/ui/calls?outcome=TOOL_NOT_FOUND"),
        await browser.page(f"/ui/calls?text={quote(HOSTILE)}"),
    ):
        assert "&lt;img src=x onerror=alert(1)&gt;" in page
        assert "<img" not in page
        assert "\u202e" not in page
        assert "\u0007" not in page


async def test_wrong_fields_are_said_and_ignored(browser: Browser) -> None:
    """A field that is too long, an unknown outcome and a wrong cursor do not fail the page."""
    page = await browser.page(f"/ui/calls?text={'x' * 5000}&outcome=maybe&within=1&before=-7")
    assert "text: at most 200 characters" in page
    assert page.count("an unknown value; this field is ignored") == 2


async def test_the_form_suggests_the_tools_that_the_token_permits(port: DashboardPort, browser: Browser) -> None:
    """A token with toolsets gets the names of their tools only; the operator gets those of all tools."""
    lean = port.browser()
    async with lean.http:
        await lean.sign_in(port.lean_token)
        suggested = re.findall(r'<option value="([^"]+)">', (await lean.page("/ui/calls")).split("</datalist>")[0])
    catalog = port.daemon.router.catalog
    assert suggested == sorted(catalog.view("lean").tools)
    every = sorted(tool.name for tool in catalog.registry.tools)
    assert suggested != every
    page = await browser.page("/ui/calls")
    assert re.findall(r'<option value="([^"]+)">', page.split("</datalist>")[0]) == every


async def test_the_page_of_a_call_has_its_children(port: DashboardPort, browser: Browser) -> None:
    """A pipeline's page has each child on a timeline, with its outcome."""
    steps = [{"id": name, "tool_name": "echo", "args": {"text": name}} for name in ("one", "two")]
    async with port.caller() as client:
        await client.call("execute_pipeline", {"steps": steps})
    await port.daemon.store.flush()
    (parent,) = await port.daemon.store.audit.ended_calls("local", 1, tool="execute_pipeline")
    page = await browser.page(f"/ui/calls/{parent.id}")
    assert 'Child calls <span class="count">2</span>' in page
    assert page.count('<svg class="span"') == 3


async def test_the_live_page_gets_changes_only(port: DashboardPort, browser: Browser) -> None:
    """The stream begins with the state and the calls that ended before; a call that starts and ends changes it, and its
    second is counted.
    """
    activity = port.daemon.recorder.activity
    async with port.caller() as client:
        await client.call("version", {})
    await port.daemon.store.flush()
    async with browser.http.stream("GET", "/ui/live") as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        lines = stream.aiter_lines()
        names = [line async for line in _until(lines, "event: seconds")]
        assert "event: html" in names
        assert any("version</a>" in name for name in names)
        assert set(activity.watched) == {None}
        async with port.caller() as client:
            await client.call("echo", {"text": "hello"})
        assert [line async for line in _until(lines, "echo</a>")]
        counted = 0
        while not counted:
            second = [line async for line in _until(lines, "data: [[")][-1]
            counted = json.loads(second.removeprefix("data: "))[0][1]
        assert counted == 1
    await until(lambda: not activity.watched)


async def test_the_stream_of_a_running_call_is_that_of_its_viewer(
    port: DashboardPort, browser: Browser, guest: Browser
) -> None:
    """It has the call and its children, and ends with the call; another principal learns nothing of the call."""
    items = [{"prompt": "[[sim:delay=600]]"}]
    async with port.caller() as client:
        arguments = {"tool_name": "chat", "items": items}
        task: asyncio.Task[object] = asyncio.create_task(client.call("execute_batch", arguments))
        await until(lambda: len({call.id for call in port.daemon.router.calls}) == 2)
        parent, child = sorted(call.id for call in port.daemon.router.calls)
        async with browser.http.stream("GET", f"/ui/live/{parent}") as stream:
            lines = stream.aiter_lines()
            html = [line async for line in _until(lines, "data: ")][-1]
            assert f'href="/ui/calls/{quote(child)}"' in html
            assert [line async for line in _until(lines, f"data: {parent} {child}")]
            other = await guest.http.get(f"/ui/live/{parent}")
            assert other.text == (await guest.http.get("/ui/live/none")).text == "event: ended\ndata: \n\n"
            assert (await browser.act(f"/ui/calls/{parent}/cancel")).status_code == 303
            assert [line async for line in lines][-3:] == ["event: ended", "data: ", ""]
        with pytest.raises(CallError):
            await task


async def test_signing_out_completes_the_live_stream(port: DashboardPort) -> None:
    """The stream ends as a complete response: the browser sees no broken connection."""
    assert port.daemon.http_host.dashboard is not None
    leaving = port.browser()
    async with leaving.http:
        await leaving.http.get(port.daemon.http_host.dashboard.sign_in_link())
        csrf = await leaving.csrf()
        async with leaving.http.stream("GET", "/ui/live") as stream:
            lines = stream.aiter_lines()
            assert [line async for line in _until(lines, "event: seconds")]
            out = await leaving.http.post("/ui/sign-out", headers={"x-csrf-token": csrf})
            assert out.status_code == 303
            async for _ in lines:  # raises RemoteProtocolError if the response is incomplete
                pass


async def _until(lines: AsyncIterator[str], part: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if part in line:
            return
