"""Signing in and out in a browser."""

import pytest
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_signing_in_and_out(page: Page, site: Site) -> None:
    """The token opens the page that was asked for; after signing out the same page asks for the token."""
    await page.open("/ui/calls")
    assert "Sign in to toold" in await page.text("h1")
    await page.click("#token")
    await page.write(site.token)
    async with page.loads():
        await page.press("Enter")
    assert await page.value("location.pathname") == "/ui/calls"
    assert await page.value("document.cookie") == ""
    async with page.loads():
        await page.click(".who button")
    await page.open("/ui/now")
    assert await page.value("location.pathname") == "/ui/sign-in"


async def test_wrong_tokens_are_refused_and_limited(chromium: Chromium, own_site: Site) -> None:
    """A wrong token is said to be wrong, and after 20 attempts the page says how long to wait."""
    async with chromium.page(own_site.url) as page:
        await page.sign_in("wrong")
        assert "token" in await page.text("[role=alert]")
        attempts = 1
        while "Too many attempts" not in await page.text("[role=alert]"):
            assert attempts < 100  # one more is allowed every 3 s
            await page.click("#token")
            await page.write("wrong")
            async with page.loads():
                await page.press("Enter")
            attempts += 1
        assert attempts > 20


async def test_an_ended_session_leads_to_the_sign_in_page(operator: Page, site: Site) -> None:
    """A page whose session has ended shows the sign-in page at its next action, which says so and leads back to it."""
    await operator.open("/ui/calls?tool=echo")
    (cookie,) = (await operator.send("Network.getCookies"))["cookies"]
    kept = {name: cookie[name] for name in ("name", "domain", "path", "httpOnly", "sameSite")}
    await operator.send("Network.setCookie", **kept, value="of-a-session-that-has-ended")
    async with operator.loads():
        await operator.click(".filters button")
    assert await operator.value("location.pathname") == "/ui/sign-in"
    await operator.shows("Your session has ended", "[role=status]")
    await operator.click("#token")
    await operator.write(site.token)
    async with operator.loads():
        await operator.press("Enter")
    assert await operator.value("location.pathname + location.search") == "/ui/calls?tool=echo"
    operator.problems.clear()  # the browser logs the status 401


async def test_a_stale_page_says_what_to_do(operator: Page) -> None:
    """An action with an old CSRF token does nothing, and the page says to reload it."""
    await operator.open("/ui/now")
    await operator.value("document.querySelector('meta[name=csrf]').content = 'f'.repeat(64)")
    status = await operator.value(
        "fetch('/ui/calls/none/cancel', {method: 'POST', headers: {'X-CSRF-Token': 'f'.repeat(64)}})"
        ".then(answer => answer.status)"
    )
    assert status == 403
    async with operator.loads():
        await operator.value("document.querySelector('.who [name=csrf]').value = 'f'.repeat(64)")
        await operator.click(".who button")
    assert "out of date" in await operator.text("h1")
    assert await operator.value("document.querySelector('main a').pathname") == "/ui/now"
    operator.problems.clear()  # the browser logs the status 403


async def test_a_page_of_another_origin_cannot_act(operator: Page, site: Site, chromium: Chromium) -> None:
    """A form that another origin's page sends is refused, and the browser stays signed in."""
    await operator.open("/ui/now")
    script = (
        "const form = document.createElement('form'); form.method = 'post'; form.action = %r;"
        " document.body.append(form); form.submit();"
    )
    async with chromium.page("data:text/html,") as other:
        await other.open("<p>another origin</p>")
        async with other.loads():
            await other.value(script % f"{site.url}/ui/sign-in")
        assert "Refused" in await other.text("h1")
    await operator.open("/ui/now")
    assert await operator.value("location.pathname") == "/ui/now"
