"""The pages of agents in a browser."""

import json

import pytest
from tests.browser.chromium import Chromium, Page
from tests.browser.conftest import Site
from tests.browser.test_now_page import HOSTILE
from tests.tools.agents.hosted import calls, script
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_person_edits_and_approves_a_call(operator: Page, site: Site, chromium: Chromium) -> None:
    """The request appears with its arguments as text; the changed ones are used, and the run shows its turns. Another
    principal neither sees the run nor decides.
    """
    async with site.caller() as caller:
        asked = script(calls(("echo", {"value": HOSTILE})), "written as you wanted")
        answer = await caller.call("careful", {"prompt": asked})
        call_id = answer.structured["call_id"]
        async with chromium.page(site.url) as guest:
            await guest.sign_in(site.guest_token)
            csrf = await guest.value("document.querySelector('meta[name=csrf]').content")
            decision = f"{{call: '{call_id}', request: 't1.0', decision: 'approve', arguments: '', requested: ''}}"
            statuses = await guest.value(
                f"Promise.all([fetch('/ui/runs/{call_id}'), fetch('/ui/approvals', {{method: 'POST',"
                f" headers: {{'X-CSRF-Token': '{csrf}'}}, body: new URLSearchParams({decision})}})])"
                ".then(all => all.map(answer => answer.status))"
            )
            assert statuses == [404, 404]
        await operator.open(f"/ui/calls/{call_id}")  # a paused call: its page is that of the run
        assert await operator.value("location.pathname") == f"/ui/runs/{call_id}"
        await operator.shows("May careful call echo?")
        assert "waiting" in await operator.text(".tool-call")
        assert json.loads(await operator.value("document.querySelector('[name=arguments]').value")) == {
            "value": HOSTILE
        }
        await operator.value("document.querySelector('[name=arguments]').value = ''")
        await operator.click("[name=arguments]")
        await operator.write('{"value": "edited by a person"}')
        async with operator.loads():
            await operator.click("button[value=approve]")
        assert await operator.value("location.pathname") == "/ui/agents"

        async def finished() -> bool:
            await operator.open(f"/ui/runs/{call_id}")
            return "written as you wanted" in await operator.text("#answer-title + pre")

        await until(finished)
    assert "Waiting" not in await operator.text("main")
    assert await operator.value("window.hacked") is None
    assert await operator.value("document.querySelectorAll('.turn').length") == 2
