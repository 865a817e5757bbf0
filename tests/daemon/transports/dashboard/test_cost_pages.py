"""The page Cost over HTTP."""

import re

import pytest

from .conftest import Browser, DashboardPort

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_principals_see_their_own_cost(port: DashboardPort, browser: Browser, guest: Browser) -> None:
    """The operator sees all principals' tokens, a guest its own, without the table of principals."""
    async with port.caller() as ours, port.caller(port.guest_token) as theirs:
        await ours.call("chat", {"prompt": "hello"})
        await theirs.call("chat", {"prompt": "hello"})
    await port.daemon.store.flush()
    everything, own = await browser.page("/ui/cost"), await guest.page("/ui/cost")
    assert "By principal" in everything
    assert "token:guest" in everything
    assert "By principal" not in own
    assert completions(own) < completions(everything)
    assert "tokens by day" in own.lower()


async def test_unknown_periods_show_thirty_days(browser: Browser) -> None:
    """A wrong value of the form does not fail the page."""
    page = await browser.page(f"/ui/cost?days={'9' * 5000}")
    assert "Last 30 days" in page
    assert "Last 365 days" in await browser.page("/ui/cost?days=365")


def completions(page: str) -> int:
    """The completions of today."""
    found = re.search(r'<p class="hint">([0-9,]+) completions', page)
    assert found is not None
    return int(found[1].replace(",", ""))
