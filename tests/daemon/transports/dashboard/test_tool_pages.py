"""The pages of tools: the list, the form, a call with it, and the texts to copy."""

import re
from collections.abc import AsyncIterator
from html import unescape

import httpx
import pytest
from tests.waiting import until

from .conftest import Browser, DashboardPort

pytestmark = pytest.mark.asyncio(loop_scope="session")

STREAM = {"accept": "text/event-stream"}


def listed(page: str) -> list[str]:
    return re.findall(r'<div class="card-title"><a href="/ui/tools/([^"]+)">', page)


async def test_the_list_has_the_tools_of_the_viewer(port: DashboardPort, browser: Browser) -> None:
    """The operator sees all tools, a token with toolsets those of its toolsets, and no page of another tool."""
    catalog = port.daemon.router.catalog
    assert listed(await browser.page("/ui/tools")) == sorted(tool.name for tool in catalog.registry.tools)
    lean = port.browser()
    async with lean.http:
        await lean.sign_in(port.lean_token)
        assert listed(await lean.page("/ui/tools")) == sorted(catalog.view("lean").tools)
        assert (await lean.http.get("/ui/tools/sim_effect")).status_code == 404
        assert (await lean.act("/ui/tools/sim_effect/call")).status_code == 404


async def test_a_search_finds_by_name_and_by_words(browser: Browser) -> None:
    """The beginning of a name finds its tool; words find what does it; a source narrows the list."""
    assert "execute_batch" in listed(await browser.page("/ui/tools?text=execute_b"))
    assert listed(await browser.page("/ui/tools?text=search+the+web"))[0] in {"glm_web_search", "apilookup"}
    assert "No tool matches." in await browser.page("/ui/tools?text=zzzzzz")
    assert "this search is ignored" in await browser.page(f"/ui/tools?text={'x' * 5000}")
    assert "No tool matches." in await browser.page("/ui/tools?source=elsewhere")


async def test_the_page_of_a_tool_has_its_form(browser: Browser) -> None:
    """Each argument has a field with its description; the required ones are marked."""
    page = await browser.page("/ui/tools/echo")
    assert 'name="/text"' in page
    assert 'name="/delay_ms"' in page
    assert (await browser.http.get("/ui/tools/nothing")).status_code == 404


async def test_a_call_streams_its_events(port: DashboardPort, browser: Browser) -> None:
    """The call starts, reports, and ends with its result and a link to its page, which the audit has."""
    events = await called(browser, "chat", {"/prompt": "Say [[sim:delay=0.3]] something long"})
    assert events[0][0] == "started"
    assert events[-1][0] == "result"
    assert "chunk" in {name for name, _ in events}
    shown = events[-1][1]
    assert '<span class="state ok">ok</span>' in shown
    assert "(simulated)" in shown
    await port.daemon.store.flush()
    call_id = events[0][1]
    assert f'href="/ui/calls/{call_id}"' in shown
    assert "dashboard over dashboard" in await browser.page(f"/ui/calls/{call_id}")


async def test_a_refused_call_says_why(browser: Browser) -> None:
    """Wrong values are named before the call; what the tool refuses is shown with its details."""
    ((name, shown),) = await called(browser, "echo", {"/text": "x", "/delay_ms": "soon"})
    assert name == "result"
    assert "delay_ms: must be a number" in shown or "delay_ms: must be a whole number" in shown
    *_, (_, shown) = await called(browser, "echo", {"/text": "x", "/delay_ms": "-5"})
    assert "VALIDATION_ERROR" in shown
    assert "delay_ms" in shown


async def test_a_call_without_scripts_gets_a_page(browser: Browser) -> None:
    """A plain form shows the result on the next page."""
    csrf = await browser.csrf()
    answer = await browser.http.post("/ui/tools/echo/call", data={"csrf": csrf, "/text": "<b>hello</b>"})
    assert answer.status_code == 200
    assert "&lt;b&gt;hello&lt;/b&gt;" in answer.text
    assert "<b>" not in answer.text


async def test_a_call_is_cancelled(port: DashboardPort, browser: Browser) -> None:
    """The action Cancel ends the call, whose stream says so; leaving the page ends it too."""
    csrf = await browser.csrf()
    data = {"/prompt": "[[sim:delay=600]]"}
    headers = {"x-csrf-token": csrf, **STREAM}
    async with browser.http.stream("POST", "/ui/tools/chat/call", data=data, headers=headers) as stream:
        lines = stream.aiter_lines()
        call_id = [line async for line in _until(lines, "data: ")][-1].removeprefix("data: ")
        assert (await browser.act(f"/ui/calls/{call_id}/cancel")).status_code == 303
        assert [line async for line in _until(lines, "CANCELLED")]
    async with browser.http.stream("POST", "/ui/tools/chat/call", data=data, headers=headers) as stream:
        await anext(stream.aiter_lines())
        assert [call for call in port.daemon.router.calls if call.tool.name == "chat"]
    await until(lambda: not [call for call in port.daemon.router.calls if call.tool.name == "chat"])


async def test_an_action_needs_the_csrf_token(browser: Browser) -> None:
    """A form of another page, and one of a stale page, calls nothing."""
    stale = await browser.http.post("/ui/tools/echo/call", data={"/text": "x", "csrf": "f" * 64}, headers=STREAM)
    assert stale.status_code == 403
    foreign = await browser.act("/ui/tools/echo/call", origin="https://elsewhere.example")
    assert foreign.status_code == 403


async def test_a_form_that_is_too_large_is_refused(port: DashboardPort, browser: Browser) -> None:
    """A form beyond the largest frame gets 413, one with a broken encoding 400; the daemon works on."""
    csrf = await browser.csrf()
    headers = {"x-csrf-token": csrf, "content-type": "application/x-www-form-urlencoded"}
    large = b"%2Ftext=" + b"x" * (21 * 1024 * 1024)
    assert (await browser.http.post("/ui/tools/echo/call", content=large, headers=headers)).status_code == 413
    broken = await browser.http.post("/ui/tools/echo/call", content=b"%2Ftext=\xff", headers=headers)
    assert broken.status_code == 400
    assert (await browser.http.get("/ui/tools/echo")).status_code == 200


async def test_the_texts_to_copy_follow_the_form(browser: Browser) -> None:
    """The values of the form are in each text, escaped."""
    csrf = await browser.csrf()
    answer = await browser.http.post(
        "/ui/tools/echo/snippets", data={"/text": "<it's>"}, headers={"x-csrf-token": csrf}
    )
    assert answer.status_code == 200
    text = unescape(answer.text)
    assert "toold call echo 'text=<it'\"'\"'s>'" in text
    assert '"method": "tools/call"' in text
    assert "<it" not in answer.text


async def called(browser: Browser, tool: str, form: dict[str, str]) -> list[tuple[str, str]]:
    """The events of a call that a script makes: (name, data)."""
    headers = {"x-csrf-token": await browser.csrf(), **STREAM}
    answer: httpx.Response = await browser.http.post(f"/ui/tools/{tool}/call", data=form, headers=headers)
    assert answer.headers["content-type"] == "text/event-stream"
    events = []
    for block in answer.text.split("\n\n")[:-1]:
        first, *data = block.split("\n")
        events.append((first.removeprefix("event: "), "\n".join(line.removeprefix("data: ") for line in data)))
    return events


async def _until(lines: AsyncIterator[str], part: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if part in line:
            return
