"""Signing in at the dashboard and out, and who may see and do what."""

import time
from html import escape
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.daemon.transports.dashboard.browser_sessions import SESSION_S
from toold.providers.simulator import Simulator

from .conftest import Browser, DashboardPort

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_browser_is_led_to_the_first_page_and_others_get_the_index(port: DashboardPort) -> None:
    """GET / answers HTML readers with the dashboard, and programs with the JSON index."""
    async with port.browser().http as http:
        led = await http.get("/", headers={"accept": "text/html,*/*"})
        assert (led.status_code, led.headers["location"]) == (307, "/ui/now")
        assert (await http.get("/")).json()["server"] == "toold"


async def test_a_daemon_without_dashboard(tmp_path: Path) -> None:
    """With ``ui = false`` no page exists, browsers get the JSON index too, and no link can be made."""
    async with Simulator() as simulator:
        env = {**simulated_environment(tmp_path / "state", simulator), "TOOLD_UI": "false"}
        async with running(load_settings({}, env=env, cwd=tmp_path)) as daemon:
            assert daemon.http_host.dashboard is None
            url = f"http://127.0.0.1:{daemon.http.port}"
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
                assert (await http.get("/", headers={"accept": "text/html"})).json()["server"] == "toold"
                for path in ("/ui/now", "/ui/sign-in", "/ui/live", "/ui/assets/app.js"):
                    assert (await http.get(path)).status_code == 404


async def test_pages_need_a_sign_in(port: DashboardPort) -> None:
    """Without a session, pages lead to the sign-in page, and requests of scripts get 401."""
    async with port.browser().http as http:
        led = await http.get("/ui/calls")
        assert (led.status_code, led.headers["location"]) == (303, "/ui/sign-in?next=/ui/calls")
        for path in ("/ui/live", "/ui/session"):
            assert (await http.get(path)).status_code == 401
        assert (await http.get("/ui/calls", headers={"hx-request": "true"})).status_code == 401


async def test_the_cookie_is_for_this_site_and_no_script(port: DashboardPort) -> None:
    """The cookie is HttpOnly and SameSite=Strict, and its name has the port, since cookies are not separate by port."""
    browser = port.browser()
    async with browser.http:
        answer = await browser.sign_in(TOKEN, "/ui/calls?tool=echo")
        assert answer.headers["location"] == "/ui/calls?tool=echo"
        (name, cookie), *_ = SimpleCookie(answer.headers["set-cookie"]).items()
        assert name == f"toold_{port.daemon.http.port}"
        assert cookie["httponly"]
        assert (cookie["samesite"], cookie["path"], cookie["secure"]) == ("strict", "/ui", "")


@pytest.mark.parametrize("target", ["https://example.com/", "//example.com", "/ui/\\example.com", "/mcp", "/ui/\n"])
async def test_a_sign_in_leads_nowhere_else(port: DashboardPort, target: str) -> None:
    """A target that is not a page of the dashboard is replaced by the first page."""
    browser = port.browser()
    async with browser.http:
        assert (await browser.sign_in(TOKEN, target)).headers["location"] == "/ui/now"


async def test_a_wrong_token_is_refused(port: DashboardPort) -> None:
    """The page says that the token is wrong, and does not repeat it."""
    browser = port.browser()
    async with browser.http:
        answer = await browser.sign_in("<script>wrong</script>")
        assert answer.status_code == 401
        assert "not valid for this daemon" in answer.text
        assert "wrong<" not in answer.text
        assert (await browser.sign_in(" ")).status_code == 400


async def test_a_browser_signs_out(port: DashboardPort, browser: Browser) -> None:
    """After signing out, the cookie's secret is worth nothing, even if the browser kept it."""
    cookies = dict(browser.http.cookies)
    answer = await browser.act("/ui/sign-out")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/sign-in")
    async with port.browser().http as http:
        http.cookies.update(cookies)
        assert (await http.get("/ui/session")).status_code == 401


async def test_an_expired_session_leads_to_the_sign_in_and_back(
    port: DashboardPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a week the browser's cookie is worth nothing: pages lead to the sign-in page, which says that the session
    has ended, and back; actions and requests of scripts do nothing and say why.
    """
    dashboard = port.daemon.http_host.dashboard
    assert dashboard is not None
    browser = port.browser()
    async with browser.http as http:
        await http.get(dashboard.sign_in_link())
        page = "/ui/calls?tool=echo&outcome=ok"
        assert "Your session has ended" not in await browser.page(page)
        form = {"x-csrf-token": await browser.csrf(), "referer": port.url + page}
        monkeypatch.setattr(dashboard._sessions, "_clock", lambda: time.time() + SESSION_S)

        led = await http.get(page)
        assert led.status_code == 303
        sign_in = await browser.page(led.headers["location"])
        assert "Your session has ended" in sign_in
        assert f'name="next" value="{escape(page)}"' in sign_in

        acted = await http.post("/ui/health/doctor", headers=form)
        assert acted.status_code == 401
        assert "so this was not done" in acted.text
        assert f'name="next" value="{escape(page)}"' in acted.text
        scripted = await http.post("/ui/calls/none/cancel", headers={**form, "hx-request": "true"})
        assert (scripted.status_code, scripted.headers["toold-problem"]) == (
            401,
            "Your session has ended; reload this page and sign in.",
        )

        back = await browser.sign_in(TOKEN, page)
        assert back.headers["location"] == page
        await browser.page(page)


async def test_an_unknown_cookie_is_that_of_an_ended_session(port: DashboardPort) -> None:
    """The sign-in page says that the session has ended if the cookie is unknown, and not if there is none."""
    async with port.browser().http as http:
        assert "has ended" not in (await http.get("/ui/sign-in")).text
        http.cookies.set(f"toold_{port.daemon.http.port}", "unknown", path="/ui")
        assert "has ended" in (await http.get("/ui/sign-in")).text


async def test_a_link_signs_in_once(port: DashboardPort) -> None:
    """A link of ``toold ui`` opens the dashboard for one browser, and is worth nothing afterwards."""
    assert port.daemon.http_host.dashboard is not None
    link = port.daemon.http_host.dashboard.sign_in_link()
    browser = port.browser()
    async with browser.http:
        assert (await browser.http.get(link)).headers["location"] == "/ui/now"
        assert 'local<span class="right">operator</span>' in await browser.page("/ui/now")
    async with port.browser().http as http:
        assert (await http.get(link)).status_code == 410


@pytest.mark.parametrize(
    "headers",
    [
        {"x_csrf_token": "0" * 64},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1.evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
async def test_actions_of_other_pages_are_refused(browser: Browser, headers: dict[str, str]) -> None:
    """A stale CSRF token, a foreign Origin and a foreign site are refused, and the browser stays signed in."""
    assert (await browser.act("/ui/sign-out", **headers)).status_code == 403
    assert (await browser.http.get("/ui/session")).status_code == 204


async def test_an_origin_that_is_no_address_is_refused(port: DashboardPort) -> None:
    """A malformed Origin gets 403 like any other that is not this server's."""
    async with port.browser().http as http:
        refused = await http.post("/ui/sign-in", data={"token": "any"}, headers={"origin": "http://["})
        assert refused.status_code == 403


async def test_each_response_forbids_foreign_content(browser: Browser) -> None:
    """Pages, streams, redirects and errors have a policy without inline scripts and frames, and are stored nowhere."""
    for path in ("/ui/now", "/ui", "/ui/sign-in", "/ui/nothing", "/ui/live/nothing"):
        headers = (await browser.http.get(path)).headers
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"].startswith("no-store")
