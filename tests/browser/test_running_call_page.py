"""The pages of a running call and of a run, which change in place."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.browser.accessibility import violations
from tests.browser.chromium import Page
from tests.browser.conftest import Site
from tests.browser.test_now_page import HOSTILE
from tests.tools.agents.hosted import calls, script

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def open_running(page: Page, tool: str) -> str:
    """Open the page of the running call of a tool from the page Now; returns its path."""
    await page.open("/ui/now")
    await page.shows(tool, "#live tbody")
    path = await page.value(
        f"[...document.querySelectorAll('#live tbody a')].find(a => a.innerText === {json.dumps(tool)}).pathname"
    )
    await page.open(str(path))
    await page.value("window.sameDocument = true")
    return str(path)


async def test_the_page_of_a_running_call_changes_in_place(operator: Page, site: Site, tmp_path: Path) -> None:
    """Progress appears without a reload, with the focus and the scroll position kept; the end is announced, and the
    page has the outcome.
    """
    gate = tmp_path / "gate"
    async with site.caller() as caller:
        arguments = {"message": f"one of four {HOSTILE}", "gate": str(gate)}
        call = asyncio.create_task(caller.call_tool("steps", arguments))
        await open_running(operator, "steps")
        await operator.shows("one of four <img", "#live .progress")
        await operator.value("document.querySelector('#live button').focus(), document.body.style.minHeight = '3000px'")
        await operator.value("scrollTo(0, 300)")
        gate.touch()
        await operator.shows("three of four", "#live .progress")
        assert await operator.value("document.querySelector('#live progress').value") == 3
        assert await operator.value("document.activeElement.innerText") == "Cancel"
        assert await operator.value("scrollY") > 200  # the browser moves it with the text above
        await operator.press("Enter")
        assert not (await call)[0]
        await operator.shows("CANCELLED", "h1")
    assert operator.questions == ["Cancel this call?"]
    assert "CANCELLED" in await operator.text("#announcement")
    assert await operator.value("document.activeElement.id") == "content"
    assert await operator.value("window.sameDocument") is True
    text = await operator.text("main")
    assert "executed: no" in text  # the tool only reads
    assert "retryable:" in text
    assert "one of four <img" in await operator.text("#arguments-title + pre")
    assert "shape" not in text  # the audit of this daemon records arguments
    assert await operator.value("window.hacked") is None


async def test_a_page_of_a_call_comes_back_after_a_lost_connection(operator: Page, site: Site, tmp_path: Path) -> None:
    """Hidden, it has no stream; shown again after the call's end, it gets the outcome."""
    async with site.caller() as caller:
        arguments = {"message": "waits", "gate": str(tmp_path / "never")}
        call = asyncio.create_task(caller.call_tool("steps", arguments))
        path = await open_running(operator, "steps")
        await operator.shows("waits", "#live .progress")
        await operator.value(
            "Object.defineProperty(document, 'hidden', {value: true, configurable: true}),"
            " document.dispatchEvent(new Event('visibilitychange')), true"
        )
        csrf = await operator.value("document.querySelector('meta[name=csrf]').content")
        await operator.value(
            f"fetch('{path}/cancel', {{method: 'POST', headers: {{'X-CSRF-Token': '{csrf}', 'HX-Request': 'true'}}}})"
            ".then(answer => answer.status)"
        )
        assert not (await call)[0]
        assert "running" in await operator.text("h1")
        await operator.value("delete document.hidden, document.dispatchEvent(new Event('visibilitychange')), true")
        await operator.shows("CANCELLED", "h1")
    assert await operator.value("window.sameDocument") is True


async def test_the_page_of_a_run_changes_in_place(operator: Page, site: Site, tmp_path: Path) -> None:
    """A turn appears when it begins, what a person has opened stays open, and the end is announced. axe finds no
    violation while the run runs.
    """
    gate = tmp_path / "gate"
    asked = script(calls(("writes", {"text": "typed", "gate": str(gate)})), "all is written")
    async with site.caller() as caller:
        run = asyncio.create_task(caller.call_tool("typist", {"prompt": asked}))
        path = await open_running(operator, "typist")
        await operator.open(path.replace("/calls/", "/runs/"))
        await operator.value("window.sameDocument = true")
        await operator.shows("writes", ".turns")
        assert not await violations(operator)
        await operator.click(".turn summary")
        assert await operator.value("document.querySelector('.turn details').open") is True
        gate.touch()
        await operator.shows("finished", "h1")
        assert (await run)[0]
    assert await operator.value("document.querySelectorAll('.turn').length") == 2
    assert "all is written" in await operator.text("#answer-title + pre")
    assert await operator.value("document.querySelector('.turn details').open") is True
    assert await operator.value("window.sameDocument") is True
    assert "finished" in await operator.text("#announcement")
