"""What the operator sees of all nodes at any of them: calls, states, problems; and which node has not answered."""

import asyncio

import httpx
from prometheus_client.parser import text_string_to_metric_families
from tests.daemon.transports.dashboard.conftest import browser_of
from toold.daemon.app import Daemon
from toold.daemon.checks.cluster_checks import MAX_CLOCK_SKEW_S, running_nodes
from toold.daemon.cluster.peer_key import PeerKey
from toold.daemon.observability.merged_metrics import merged_metrics

from .conftest import Greet, StartNode, make_silent, node_of, running_call

Pair = tuple[Daemon, Daemon]
KEY = PeerKey("a-secret-of-all-nodes")


async def test_the_dashboard_shows_and_cancels_calls_of_all_nodes(nodes: Pair, greet: Greet) -> None:
    """The live page names the node of each call; the page of a call and its cancel work for any node's."""
    first, second = nodes
    client, call_id = await running_call(first, greet)
    _, own_id = await running_call(second, greet)
    async with browser_of(second) as browser, asyncio.timeout(60):
        while f"call-{call_id}" not in (page := await browser.page("/ui/now")):
            await asyncio.sleep(0.01)
        assert f"call-{own_id}" in page
        assert [f">{name}</td>" in page for name in "ab"] == [True, True]
        assert "appear here when the call has ended" in await browser.page(f"/ui/calls/{call_id}")
        await browser.act(f"/ui/calls/{call_id}/cancel")
        assert (await client.answer())["error"]["code"] == "CANCELLED"


async def test_the_health_page_lists_the_nodes(silent_port: int, start_node: StartNode) -> None:
    """With the problems of each, and those that do not answer."""
    first, second = await start_node("a", TOOLD_MAX_RUNNING="7"), await start_node("b")
    for node in (first, second):
        assert node.cluster is not None
        await node.cluster.membership.refresh()
    async with browser_of(second) as browser:
        page = await browser.page("/ui/health")
        assert "Table: nodes" in page
        assert "node b has other values of: audit.key, max_running" in page  # as node a reports it
        await make_silent(first, silent_port, seen_by=second)
        assert "does not answer" in await browser.page("/ui/health")


async def test_views_name_the_nodes_that_do_not_answer(
    silent_port: int, nodes: Pair, greet: Greet, http: httpx.AsyncClient
) -> None:
    """The calls of the others are shown all the same; the charts of the dashboard name the node that they are of."""
    first, second = nodes
    await make_silent(first, silent_port, seen_by=second)
    _, call_id = await running_call(second, greet)
    operator = f"{second.address().http_url}operator"
    calls = (await http.get(f"{operator}/calls")).json()
    assert ([row["id"] for row in calls["running"]], calls["unanswered"]) == ([call_id], ["a"])
    refused = await http.post(f"{operator}/calls/a0-77/cancel")
    assert (refused.status_code, "have not answered: a." in refused.text) == (404, True)
    client = await greet(second)
    rows = {row["name"]: row for row in (await client.call("1", "status"))["structured"]["nodes"]}
    assert [rows[name]["answers"] for name in "ab"] == [False, True]
    async with browser_of(second) as browser, asyncio.timeout(60):
        while "The node a does not answer" not in await browser.page("/ui/now"):
            await asyncio.sleep(0.01)
        assert "Calls per second of the node b" in await browser.page("/ui/now")


async def test_metrics_are_those_of_one_node_or_of_all(nodes: Pair, greet: Greet, http: httpx.AsyncClient) -> None:
    """With the number of nodes as it sees them. Of all nodes, each sample has the label of its node."""
    await running_call(nodes[0], greet)
    pages = [(await http.get(f"{node.address().http_url}metrics")).text for node in nodes]
    assert [f"toold_calls_running {number}.0" in page for number, page in zip((1, 0), pages, strict=True)] == [True] * 2
    assert all('toold_nodes{state="live"} 2.0' in page for page in pages)
    page = (await http.get(f"{nodes[1].address().http_url}metrics", params={"nodes": "all"})).text
    samples = {
        (sample.labels["node"], sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "toold_calls_running"
    }
    assert samples == {("a", 1.0), ("b", 0.0)}


def test_merged_metrics_keep_families_and_labels() -> None:
    """Each family has its comments once, as the format demands; names and values of labels stay as they are."""
    page = '# HELP x_total Of.\n# TYPE x_total counter\nx_total{of="a } b"} 1.0\n# TYPE y gauge\ny 2e-05\n'
    merged = merged_metrics({'a"': page, "b": page}, ["c"])
    assert merged.count("# TYPE x_total counter") == merged.count("# TYPE y gauge") == 1
    found = {
        (sample.name, *sample.labels.values(), sample.value)
        for family in text_string_to_metric_families(merged)
        for sample in family.samples
    }
    assert found == {
        *(("toold_node_answered", node, answered) for node, answered in (('a"', 1.0), ("b", 1.0), ("c", 0.0))),
        *(("x_total", node, "a } b", 1.0) for node in ('a"', "b")),
        *(("y", node, 2e-05) for node in ('a"', "b")),
    }


async def test_the_doctor_asks_each_node(start_node: StartNode) -> None:
    """For its problems and its clock; a node that does not answer, or has another secret, fails."""
    first, second = await start_node("a"), await start_node("b")
    rows = [node_of(node).row for node in (first, second)]
    checks = await running_nodes(rows, KEY, clock_ahead_s=0.0)
    assert [(check.name, check.status) for check in checks] == [("node a", "ok"), ("node b", "warn")]
    assert checks[0].message == "live, 0 connections, 0 calls, no problems"
    assert "problems: node a has other values of: audit.key" in checks[1].message
    (late,) = await running_nodes(rows[:1], KEY, clock_ahead_s=MAX_CLOCK_SKEW_S + 3600)
    assert (late.status, "s behind the database's" in late.message) == ("warn", True)
    (stranger,) = await running_nodes(rows[:1], PeerKey("another-secret-of-nodes"), clock_ahead_s=0.0)
    assert (stranger.status, "cluster_secret differs" in stranger.message) == ("fail", True)
    node_of(first).address = node_of(first).address.replace(str(first.http.port), "1")
    silent, answering = await running_nodes([node_of(first).row, rows[1]], KEY, clock_ahead_s=0.0)
    assert (silent.name, silent.status, "does not answer" in silent.message) == ("node a", "fail", True)
    assert answering.status == "warn"
