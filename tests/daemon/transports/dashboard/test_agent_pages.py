"""The pages of agents, their runs turn by turn, and decisions on what they ask."""

import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from tests.tools.agents.hosted import calls, script
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator

from .conftest import Browser, browser_of

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG = """
[agents.careful]
description = "Writes with care. <b>Really</b>."
prompt = "The secret prompt."
tools = ["echo", "version"]
approve = ["echo"]
ask = true

[agents.team]
description = "Two after each other."
execution_type = "sequential"
roles = [{name = "first", prompt = "x"}, {name = "second", prompt = "y"}]
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Daemon]:
    """A daemon with two agents."""
    directory = tmp_path_factory.mktemp("agents")
    (directory / "toold.toml").write_text(CONFIG)
    async with Simulator() as simulator:
        env = simulated_environment(directory / "state", simulator)
        async with running(load_settings({}, env=env, cwd=directory)) as daemon:
            yield daemon


@pytest_asyncio.fixture(loop_scope="session")
async def operator(daemon: Daemon) -> AsyncIterator[Browser]:
    """A browser of the operator."""
    async with browser_of(daemon) as browser:
        yield browser


async def paused(daemon: Daemon, prompt: str) -> str:
    """The id of a call that has paused."""
    async with MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
        answer: Any = (await client.call("careful", {"prompt": prompt})).structured
    assert answer["paused"] is True
    return str(answer["call_id"])


async def ended(daemon: Daemon, call_id: str) -> Any:
    """The result of a call that continues after a decision."""
    async with MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:

        async def done() -> bool:
            return bool((await client.call("call_status", {"call_id": call_id})).structured["state"] == "done")

        await until(done)
        return (await client.call("call_result", {"call_id": call_id})).structured["result"]


async def test_an_agent_is_a_graph_with_roles(operator: Browser) -> None:
    """The list has both; the page has a picture with a text for readers, and no markup of the description."""
    listed = await operator.page("/ui/agents")
    assert 'href="/ui/agents/careful"' in listed
    assert "<b>" not in listed
    page = await operator.page("/ui/agents/team")
    assert page.count('class="node role"') == 2
    assert "Roles: first, second" in page
    assert (await operator.http.get("/ui/agents/none")).status_code == 404


async def test_what_a_run_spends_counts_for_its_agent(daemon: Daemon, operator: Browser) -> None:
    """The page Cost has the turns of its roles by agent, and not under the name of the hidden tool that asks models."""
    async with MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
        await client.call("team", {"prompt": "Write."})
        await client.call("chat", {"prompt": "Write."})
    await daemon.store.flush()
    spent = await daemon.store.audit.usage_since("2000-01-01")
    assert {(part.tool, part.agent, part.completions) for part in spent if part.agent == "team"} == {
        ("agent_turn", "team", 2)
    }
    page = await operator.page("/ui/cost")
    by_agent = page.partition("By agent</h2>")[2]
    assert '<th scope="row">team</th><td class="number">2</td>' in by_agent
    assert "chat" not in by_agent
    assert "agent_turn" not in page


async def test_arguments_are_edited_and_approved(daemon: Daemon, operator: Browser) -> None:
    """The request has its arguments; the call runs with those of the person, and the run is shown turn by turn."""
    call_id = await paused(daemon, script(calls(("echo", {"value": "mine"})), "done now"))
    page = await operator.page("/ui/agents")
    assert "May careful call echo?" in page
    assert "waiting for a person" in await operator.page("/ui/now")  # in the navigation
    form = {"call": call_id, "request": request_of(page), "requested": '{"value": "mine"}', "decision": "approve"}
    broken = await operator.send("/ui/approvals", **form, arguments='{"value"')
    assert broken.status_code == 400
    assert (await operator.send("/ui/approvals", **form, arguments='{"value": "yours"}')).status_code == 303
    assert "done now" in str(await ended(daemon, call_id))
    assert "May careful call" not in await operator.page("/ui/agents")
    await daemon.store.flush()
    run = await operator.page(f"/ui/runs/{call_id}")
    assert "done now" in run
    assert unescape(run).count('"mine"') >= 1  # what the model wanted
    assert 'class="panel turn"' in run
    rows = await daemon.store.audit.ended_calls("local", 5, tool="agent_decide")
    assert {row.transport for row in rows} == {"dashboard"}


async def test_a_call_is_rejected_with_a_reason(daemon: Daemon, operator: Browser) -> None:
    """The call does not run, and the model gets the reason."""
    call_id = await paused(daemon, script(calls(("echo", {"value": 1})), "then not"))
    request = request_of(await operator.page(f"/ui/runs/{call_id}"))
    sent = await operator.send("/ui/approvals", call=call_id, request=request, decision="reject", text="too dear")
    assert sent.status_code == 303
    result = await ended(daemon, call_id)
    assert result["calls"][0]["outcome"] == "NOT_APPROVED"


async def test_decisions_on_nothing_are_refused(operator: Browser, guest: Browser) -> None:
    """An id of no paused call, or of somebody else's, is not found; a wrong decision is an error."""
    for browser in (operator, guest):
        answer = await browser.send("/ui/approvals", call="none", request="t1.0", decision="approve", arguments="")
        assert answer.status_code == 404
    answer = await operator.send("/ui/approvals", call="none", request="t1.0", decision="perhaps")
    assert answer.status_code == 400
    assert (await operator.http.get("/ui/runs/none")).status_code == 404


def request_of(page: str) -> str:
    """The id of the request that a page asks to decide."""
    found = re.search(r'name="request" value="([^"]+)"', page)
    assert found is not None
    return unescape(found[1])
