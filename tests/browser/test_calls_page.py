"""The page Calls in a browser."""

import asyncio
import time

import pytest
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Site
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MANY = 10_000
SLOWDOWN = 2
"""How many times as long the list may take to open with 10,000 recorded calls as with 100."""


COUNT_ALL = """(async () => {
    let [url, rows] = ["/ui/calls", 0];
    while (url) {
        const page = new DOMParser().parseFromString(await (await fetch(url)).text(), "text/html");
        rows += page.querySelectorAll("#found tbody tr").length;
        url = page.querySelector("a[rel=next]")?.getAttribute("href");
    }
    return rows;
})()"""
"""The rows of all pages of the list; a browser that shows each of them would take a minute."""


async def make_calls(site: Site, first: int, last: int) -> None:
    async with site.caller() as caller:
        for start in range(first, last, 100):
            calls = (caller.call_tool("echo", {"text": f"number {text}"}) for text in range(start, start + 100))
            await asyncio.gather(*calls)


async def shown_rows(page: Page) -> int:
    return int(await page.value("document.querySelectorAll('#found tbody tr').length"))


async def test_a_search_narrows_the_list_without_a_reload(operator: Page, site: Site) -> None:
    """Typing in the field finds calls by their error and keeps the focus; the new address finds the same again."""
    async with site.caller() as caller:
        assert (await caller.call_tool("echo", {"text": "x"}))[0]
        await caller.call_tool("fails_with", {"text": "a needle in a haystack"})
    await operator.open("/ui/calls")
    await operator.value("window.sameDocument = true")
    await operator.click("#text")
    await operator.write("needle")
    await operator.press("Space")
    await operator.shows("fails_with", "#found")
    await operator.hides("echo", "#found")
    assert await operator.value("window.sameDocument && document.activeElement.id") == "text"
    address = await operator.value("location.pathname + location.search")
    assert "needle" in address
    await operator.open(address)
    assert "fails_with" in await operator.text("#found")
    assert "echo" not in await operator.text("#found")


async def test_times_are_in_the_zone_of_the_browser(operator: Page, site: Site) -> None:
    """The time that the page shows is that of the zone; the title has UTC."""
    async with site.caller() as caller:
        assert (await caller.call_tool("echo", {"text": "in Tokyo"}))[0]
    await operator.send("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    await operator.open("/ui/calls?text=Tokyo")
    shown, of_zone, title = await operator.value(
        "(t => [t.textContent, new Intl.DateTimeFormat(undefined, {timeStyle: 'medium', timeZone: 'Asia/Tokyo'})"
        ".format(new Date(t.dateTime)), t.title])(document.querySelector('#found time'))"
    )
    assert of_zone in shown
    assert title.endswith(" UTC")


async def test_a_megabyte_in_the_search_field_is_refused(operator: Page) -> None:
    """A field takes 200 characters; a longer one that comes all the same is answered, and the page works on."""
    await operator.open("/ui/calls")
    for path in ("calls", "tools", "settings"):
        status = await operator.value(
            f"fetch('/ui/{path}?text=' + 'x'.repeat(1_000_000)).then(answer => answer.status, () => 0)"
        )
        assert status in {0, 400, 414, 431}
    await operator.value("document.querySelector('#text').removeAttribute('maxlength')")
    await operator.value("document.querySelector('#text').value = 'x'.repeat(1_000)")
    await operator.click(".filters button")
    await operator.shows("at most 200 characters", "#found")
    operator.problems[:] = [text for text in operator.problems if "Failed to load resource" not in text]


async def test_ten_thousand_calls_are_paged(chromium: Chromium, own_site: Site) -> None:
    """With 10,000 calls the list takes at most twice as long to open as with 100, and its pages lead to the oldest."""
    async with chromium.page(own_site.url) as page:
        await page.sign_in(own_site.token)

        async def opening() -> float:
            times = []
            for _ in range(5):
                begun = time.perf_counter()
                await page.open("/ui/calls")
                times.append(time.perf_counter() - begun)
            return min(times)

        async def full() -> bool:
            await page.open("/ui/calls")
            return await shown_rows(page) == 100

        await make_calls(own_site, 0, 100)
        await until(full)
        few = await opening()
        await make_calls(own_site, 100, MANY)

        async def recorded() -> bool:
            await page.open(f"/ui/calls?text=number+{MANY - 1}")
            return await shown_rows(page) == 1

        await until(recorded)
        many = await opening()
        assert many < few * SLOWDOWN
        async with page.loads():
            await page.click("a[rel=next]")
        assert await shown_rows(page) == 100
        assert await page.value(COUNT_ALL) >= MANY
