"""The pages about the daemon: models, sessions, health and settings."""

import re

import pytest
from tests.simulated_daemon import TOKEN

from .conftest import Browser, DashboardPort

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_models_are_shown_to_everyone(port: DashboardPort, browser: Browser, guest: Browser) -> None:
    """Each model of the catalog, whether it can be asked, and each vendor with its permits."""
    for page in (await browser.page("/ui/models"), await guest.page("/ui/models")):
        for model in port.daemon.view.catalog.models:
            assert f'<th scope="row">{model.id}' in page
        assert 'aria-label="Requests at' in page


async def test_sessions_have_their_client_and_calls(port: DashboardPort, browser: Browser) -> None:
    """A connected client is in the list; its name is escaped."""
    async with port.caller() as client:
        await client.call("echo", {"text": "x"})
        page = await browser.page("/ui/sessions")
        assert "connected" in page
        assert "websocket" in page
    assert re.search(r"[0-9]+ browsers? (is|are) signed in", page)


async def test_health_has_checks_disk_and_versions(port: DashboardPort, browser: Browser) -> None:
    """The checks of the running daemon at once; those of the doctor on request, which the audit has."""
    page = await browser.page("/ui/health")
    assert "Checks of the running daemon" in page
    assert "are free" in page
    assert "It changes nothing." in page
    answer = await browser.act("/ui/health/doctor")
    assert answer.status_code == 200
    assert "Table: toold doctor" in answer.text
    assert ">python</th>" in answer.text
    await port.daemon.store.flush()
    assert await port.daemon.store.audit.ended_calls("local", 1, tool="dashboard:doctor")


async def test_settings_have_their_origin_and_no_secret(browser: Browser) -> None:
    """Where each value comes from; a secret is only said to be set; the filters narrow the list."""
    page = await browser.page("/ui/settings")
    assert TOKEN not in page
    assert re.search(r"<code>token</code></th><td class=\"value\">set<", page)
    assert "<code>max_<wbr>running</code>" in page
    found = await browser.page("/ui/settings?text=max_run")
    assert "<code>max_<wbr>running</code>" in found
    assert "<code>token</code>" not in found
    assert "<code>max_<wbr>running</code>" not in await browser.page("/ui/settings?show=set")
    assert "No setting matches." in await browser.page(f"/ui/settings?text={'x' * 5000}")


@pytest.mark.parametrize("page", ["sessions", "health", "settings"])
async def test_only_operators_see_them(guest: Browser, page: str) -> None:
    """The pages and the action do not exist for others, nor do links to them."""
    assert (await guest.http.get(f"/ui/{page}")).status_code == 404
    assert (await guest.act("/ui/health/doctor")).status_code == 404
    assert f'href="/ui/{page}"' not in await guest.page("/ui/now")
