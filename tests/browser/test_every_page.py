"""Rules for each page of the dashboard. The pages are those of its navigation, so new ones are covered too."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from tests.browser.accessibility import FINISH_TRANSITIONS, violations
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Site
from tests.tools.agents.hosted import calls, script
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

NARROW: Final = 420
WIDTHS: Final = (NARROW, 1440, 3840)
"""From a telephone to a screen with 4K, in CSS pixels."""
SHORTEN: Final = (
    "for (const list of document.querySelectorAll('tbody, .cards'))"
    " for (const row of [...list.children].slice(12)) row.remove()"
)
"""Removes most rows of long lists, which are alike: axe takes half a second per row."""
LINKED: Final = (
    "[...document.querySelectorAll('main table td a, main .card-title a')].map(a => a.pathname)"
    ".filter(path => path.startsWith('/ui/')).slice(0, 3)"
)
"""The pages that a page of the navigation leads to."""
FORMS: Final = ("/ui/tools/every_kind",)
"""The pages with forms of many kinds."""
PICTURES: Final = os.environ.get("PICTURES")
"""A directory for a picture of each page in ``WIDTHS``, light and dark."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def paths(site: Site, chromium: Chromium, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[str]]:
    """The paths of all kinds of pages while a call runs, after calls that succeeded, failed and had child calls."""
    async with chromium.page(site.url) as page, site.caller() as caller:
        await page.sign_in(site.token)
        assert (await caller.call_tool("echo", {"text": "words " * 200}))[0]
        assert (await caller.call_tool("chat", {"prompt": "What is this?"}))[0]
        await caller.call_tool("fails_with", {"text": "a" * 2000})
        assert (await caller.call_tool("team", {"prompt": "Write."}))[0]
        await caller.call_tool("careful", {"prompt": script(calls(("echo", {"value": 1})), "done")})
        items = [{"text": str(number)} for number in range(3)]
        assert (await caller.call_tool("execute_batch", {"tool_name": "echo", "items": items}))[0]
        gate = tmp_path_factory.mktemp("gate") / "never"
        arguments = {"message": "one of four " + "m" * 300, "gate": str(gate)}
        call = asyncio.create_task(caller.call("steps", arguments, timeout=1_800))

        async def recorded() -> bool:
            await page.open("/ui/calls")
            return "execute_batch" in await page.text("#found")

        await until(recorded)
        yield await found_paths(page)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call


async def found_paths(page: Page) -> list[str]:
    """The sign-in page, the pages of the navigation, the first of each kind to which these lead, the page of the call
    that runs, and ``FORMS``.
    """
    await page.open("/ui/now")
    of_navigation: list[str] = await page.value("[...document.querySelectorAll('nav a')].map(link => link.pathname)")
    assert of_navigation
    found = ["/ui/sign-in", *of_navigation]
    running = await page.value("document.querySelector('.running-calls a').pathname")
    for path in of_navigation:
        await page.open(path)
        found += await page.value(LINKED)
    kinds = {path.split("/")[2] if path.count("/") > 2 else path: path for path in reversed(found) if path != running}
    return list(dict.fromkeys([*reversed(kinds.values()), running, *FORMS]))


@pytest.mark.timeout(600)
async def test_no_page_breaks_a_rule_of_accessibility(operator: Page, paths: list[str]) -> None:
    """axe finds no violation on any page, nor while a tool asks a question, wide and light, narrow and dark."""
    broken: dict[str, Any] = {}
    for path in paths:
        await operator.open(path)
        await operator.value(SHORTEN)
        broken[path] = await violations(operator)
    await operator.open("/ui/tools/asks")
    await operator.click('[name="/text"]')
    await operator.write("How much?")
    await operator.click("#arguments .buttons button")
    await operator.shows("How much?", "#questions")
    broken["a question"] = await violations(operator)
    broken = {page: found for page, found in broken.items() if found}
    assert not broken, json.dumps(broken, indent=1)


@pytest.mark.timeout(600)
async def test_no_page_scrolls_sideways(operator: Page, paths: list[str]) -> None:
    """Each page is as wide as the window: only boxes scroll, and from 1,440 px on these do not have to either."""
    wide = {}
    for path in paths:
        await operator.open(path)
        for width in WIDTHS:
            await operator.show(width=width, dark=False)
            needed = await operator.value("document.documentElement.scrollWidth")
            boxes = await operator.value(
                "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
                ".map(e => [e.ariaLabel, e.scrollWidth - e.clientWidth])"
            )
            if needed > width or (boxes and width > NARROW):
                wide[f"{path} at {width} px"] = (needed, boxes)
            if PICTURES:
                await save_pictures(operator, path, width)
    assert not wide


async def save_pictures(page: Page, path: str, width: int) -> None:
    name = path.removeprefix("/ui/").replace("/", "-")[:40]
    for dark in (False, True):
        await page.show(width=width, dark=dark)
        await page.value(FINISH_TRANSITIONS)
        colours = "dark" if dark else "light"
        Path(PICTURES or ".", f"{name}-{width}-{colours}.png").write_bytes(await page.picture())


@pytest.mark.usefixtures("paths")
async def test_a_narrow_window_has_what_waits_for_a_person(operator: Page) -> None:
    """At 420 px the navigation says that something waits, and the page has the whole form of the request."""
    await operator.show(width=NARROW, dark=False)
    await operator.open("/ui/now")
    assert await operator.value("document.querySelector('nav a[href=\"/ui/agents\"] .badge').checkVisibility()")
    await operator.open("/ui/agents")
    hidden = await operator.value(
        "[...document.querySelectorAll('main form button, main form textarea:not([hidden])')]"
        ".filter(e => !e.checkVisibility() || e.getBoundingClientRect().right > innerWidth).length"
    )
    assert hidden == 0
    assert "Approve" in await operator.text("main")


@pytest.mark.usefixtures("paths")
async def test_the_button_of_a_call_is_in_the_window(operator: Page) -> None:
    """At 1,280 px the list of calls does not scroll, even if a progress message is one long word."""
    await operator.open("/ui/now")
    await operator.shows("mmm", "#live .progress")
    assert await operator.value("document.querySelector('#live .action button').getBoundingClientRect().right") < 1280


async def test_the_keyboard_reaches_everything(operator: Page, paths: list[str]) -> None:
    """On each page Tab visits each visible link, button and field, each with a visible focus, and comes out again."""
    for path in paths:
        await operator.show(width=1280, dark=False)
        await operator.open(path)
        wanted = await operator.value(
            "(window.wanted = new Set([...document.querySelectorAll('a[href], button, input, select, textarea')]"
            ".filter(e => e.type !== 'hidden' && e.tabIndex >= 0 && e.checkVisibility()))).size"
        )
        await operator.value("document.activeElement.blur()")
        for _ in range(3 * wanted + 20):
            await operator.press("Tab")
            left, is_visible = await operator.value(
                "(e => [(window.wanted.delete(e), window.wanted.size), ['BODY', 'MAIN'].includes(e.tagName)"
                " || getComputedStyle(e).outlineStyle !== 'none'])(document.activeElement)"
            )
            assert is_visible
            if left == 0:
                break
        missed = await operator.value("[...window.wanted].map(e => e.outerHTML.slice(0, 200))")
        assert not missed, path
