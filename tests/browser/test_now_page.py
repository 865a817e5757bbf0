"""The page Now in a browser."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Site, foreign_requests
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

HOSTILE = (
    '<img src="http://192.0.2.1/x.png" onerror="window.hacked=1"><script>window.hacked=1</script>'
    '<a href="javascript:window.hacked=1">x</a>\'"--></textarea>'
)


async def test_a_call_appears_progresses_and_is_cancelled(operator: Page, site: Site, tmp_path: Path) -> None:
    """A call appears without a reload with its progress, which changes; its button cancels it, after a question."""
    await operator.open("/ui/now")
    gate = tmp_path / "gate"
    async with site.caller() as caller:
        call = asyncio.create_task(caller.call_tool("steps", {"message": "one of four", "gate": str(gate)}))
        await operator.shows("one of four", "#live tbody")
        assert await operator.value("document.querySelector('#live progress').value") == 1
        gate.touch()
        await operator.shows("three of four", "#live tbody")
        assert await operator.value("document.querySelector('#live progress').value") == 3
        await operator.click("#live .action button")
        success, _, error = await call
    assert not success
    assert "cancel" in str(error).lower()
    assert operator.questions == ["Cancel this call of steps?"]
    await operator.shows("No call is running.")
    await operator.shows("steps", "[aria-label='Ended calls']")


async def test_a_call_is_cancelled_with_the_keyboard(operator: Page, site: Site, tmp_path: Path) -> None:
    """Tab reaches the button of a call, and Enter presses it, while the page changes below the focus."""
    await operator.open("/ui/now")
    async with site.caller() as caller:
        arguments = {"message": "waits", "gate": str(tmp_path / "never")}
        call = asyncio.create_task(caller.call_tool("steps", arguments))
        await operator.shows("waits", "#live tbody")
        for _ in range(30):
            await operator.press("Tab")
            if await operator.value("document.activeElement.matches('#live .action button')"):
                break
        assert (await caller.call_tool("echo", {"text": "changes the page"}))[0]
        await operator.shows("echo", "[aria-label='Ended calls']")
        await operator.press("Enter")
        success, _, _ = await call
    assert not success


async def test_hostile_text_does_nothing(operator: Page, site: Site, tmp_path: Path) -> None:
    """Names, progress, arguments and errors with markup are text: no script runs, no other address is asked."""
    await operator.open("/ui/now")
    async with site.caller() as caller:
        arguments = {"message": HOSTILE, "gate": str(tmp_path / "never")}
        call = asyncio.create_task(caller.call_tool("steps", arguments))
        await operator.shows("<img src=", "#live .progress")
        await caller.call_tool(HOSTILE, {})
        await caller.call_tool("fails_with", {"text": HOSTILE})
        await operator.shows("fails_with", "[aria-label='Ended calls']")
        await operator.click("#live .action button")
        await call
    seen = 0
    await operator.shows("steps", "[aria-label='Ended calls']")
    links = await operator.value("[...document.querySelectorAll('#live td a')].map(link => link.getAttribute('href'))")
    for path in ["/ui/calls", *links]:

        async def recorded(path: str = path) -> bool:
            await operator.open(path)
            return "Not found" not in await operator.text("h1")

        await until(recorded)  # the audit is written after the answer
        seen += "<img src=" in await operator.text()
        assert await operator.value("window.hacked") is None
        assert await operator.value("document.querySelectorAll('main img, main script, a[href^=java]').length") == 0
    assert seen
    operator.problems[:] = [text for text in operator.problems if "404" not in text]


async def test_principals_see_their_own_calls_only(
    operator: Page, site: Site, chromium: Chromium, tmp_path: Path
) -> None:
    """A guest sees its own running call and not the operator's, whose page and cancel action are not found."""
    await operator.open("/ui/now")
    never = str(tmp_path / "never")
    async with chromium.page(site.url) as guest, site.caller() as ours, site.caller(site.guest_token) as theirs:
        await guest.sign_in(site.guest_token)
        calls: list[asyncio.Task[Any]] = [
            asyncio.create_task(caller.call_tool("steps", {"message": message, "gate": never}))
            for caller, message in ((ours, "of the operator"), (theirs, "of the guest"))
        ]
        await operator.shows("of the operator")
        await operator.shows("of the guest")
        await guest.shows("of the guest")
        assert "of the operator" not in await guest.text()
        ids = set(await operator.value("[...document.querySelectorAll('#live tr[id]')].map(row => row.id.slice(5))"))
        own = set(await guest.value("[...document.querySelectorAll('#live tr[id]')].map(row => row.id.slice(5))"))
        assert len(ids) == 2
        (foreign,) = ids - own
        csrf = await guest.value("document.querySelector('meta[name=csrf]').content")
        statuses = await guest.value(
            f"Promise.all([fetch('/ui/calls/{foreign}'), fetch('/ui/calls/{foreign}/cancel', {{method: 'POST',"
            f" headers: {{'X-CSRF-Token': '{csrf}'}}}})]).then(all => all.map(answer => answer.status))"
        )
        assert statuses == [404, 404]
        await guest.click("#live .action button")
        await calls[1]
        assert not calls[0].done()
        await operator.hides("of the guest")
        await operator.click("#live .action button")
        await calls[0]


async def test_an_open_page_outlives_a_restart_of_the_daemon(chromium: Chromium, own_site: Site) -> None:
    """An open page says that the daemon is away, and shows its calls again after the restart, without a person."""
    async with chromium.page(own_site.url) as page:
        await page.sign_in(own_site.token)
        await page.value("window.sameDocument = true")
        assert own_site.process.stop() == 0
        await page.shows("connecting again", "#notice")
        own_site.restart()
        await page.hides("connecting again")
        async with own_site.caller() as caller:
            assert (await caller.call_tool("echo", {"text": "after"}))[0]
        await page.shows("echo", "[aria-label='Ended calls']")
        assert await page.value("window.sameDocument") is True
        assert not foreign_requests(page)
