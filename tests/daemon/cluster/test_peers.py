"""What a node learns from the other nodes, and does there: calls, cancels, settings, HTTP requests about sessions."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest
from toold.daemon.app import Daemon
from toold.daemon.cluster.membership import Membership
from toold.daemon.cluster.peer_key import PEER_HEADER, PeerKey
from toold.protocol.tool_call import LOCAL, stored_principal

from .conftest import Greet, StartNode, make_silent, node_of, running_call
from .memory_cluster import MemoryCluster, MemoryNode


async def test_the_operator_sees_and_cancels_calls_of_all_nodes(
    nodes: tuple[Daemon, Daemon], greet: Greet, http: httpx.AsyncClient
) -> None:
    """``toold calls`` lists the calls of each node with its name; ``toold cancel`` ends one at another node."""
    first, second = nodes
    client, call_id = await running_call(first, greet)
    operator = f"{second.address().http_url}operator"
    (row,) = (await http.get(f"{operator}/calls")).json()["running"]
    assert (row["id"], row["node"], row["tool"]) == (call_id, "a", "echo")
    assert (await http.post(f"{operator}/calls/{call_id}/cancel")).json()["id"] == call_id
    assert (await client.answer())["error"]["code"] == "CANCELLED"


async def test_a_principal_finds_and_cancels_its_call_at_another_node(
    nodes: tuple[Daemon, Daemon], greet: Greet
) -> None:
    """``call_status`` and ``cancel_call`` ask the node that the id names."""
    first, second = nodes
    client, call_id = await running_call(first, greet)
    other = await greet(second)
    status = await other.call("1", "call_status", call_id=call_id)
    assert (status["structured"]["state"], status["structured"]["tool"]) == ("running", "echo")
    cancelled = await other.call("2", "cancel_call", call_id=call_id)
    assert cancelled["structured"] == {"call_id": call_id, "cancelled": True}
    assert (await client.answer())["error"]["code"] == "CANCELLED"
    assert (await other.call("3", "call_status", call_id=call_id))["structured"]["state"] != "running"


async def test_a_call_of_another_principal_is_unknown(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """The other node answers for the principal that asks."""
    first, second = nodes
    _, call_id = await running_call(first, greet)
    assert second.cluster is not None
    mine = await second.cluster.peers.find_call(None, LOCAL, call_id)
    stranger = stored_principal("stranger")
    assert mine is not None
    assert mine.state == "running"
    theirs = await second.cluster.peers.find_call(None, stranger, call_id)
    assert theirs is not None
    assert theirs.state == "unknown"
    assert not await second.cluster.peers.cancel(None, stranger, call_id)


async def test_a_detached_result_is_found_at_any_node(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """While the node that ran it holds its session, another node asks that one."""
    first, second = nodes
    client, other = await greet(first), await greet(second)
    started = await client.call("1", "execute_batch", tool_name="echo", items=[{"text": "hi"}], detach=True)
    call_id = started["structured"]["call_id"]
    async with asyncio.timeout(60):
        number = 0
        while True:
            number += 1
            result = await other.call(str(number), "call_result", call_id=call_id)
            if result["structured"]["state"] not in {"waiting", "running", "ending"}:
                break
    assert result["structured"]["state"] == "done"
    assert result["structured"]["result"]["succeeded"] == 1


async def test_a_call_whose_node_does_not_answer_is_not_called_running(
    silent_port: int, nodes: tuple[Daemon, Daemon], greet: Greet
) -> None:
    """The node may have said before that the call has ended, so another one does not guess its state."""
    first, second = nodes
    client, other = await greet(first), await greet(second)
    started = await client.call("1", "execute_batch", tool_name="echo", items=[{"text": "hi"}], detach=True)
    call_id = started["structured"]["call_id"]
    await make_silent(first, silent_port, seen_by=second)
    unknown = await other.call("1", "call_status", call_id=call_id)
    assert (unknown["error"]["code"], unknown["error"]["executed"]) == ("SERVICE_UNAVAILABLE", "no")


async def test_a_request_with_an_idempotency_key_is_relayed(
    nodes: tuple[Daemon, Daemon], http: httpx.AsyncClient
) -> None:
    """A repeat at another node gets the first answer from the node that has it."""
    first, second = nodes
    headers = {"Idempotency-Key": "order-7"}
    body = {"text": "one line"}
    answers = [
        await http.post(f"{node.address().http_url}tools/sim_effect", json=body, headers=headers)
        for node in (first, second, second)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len({answer.text for answer in answers}) <= 2
    log = first.state.path / "sim_effect.log"
    assert log.read_text().splitlines() == ["one line"]
    assert not (second.state.path / "sim_effect.log").exists()


async def test_a_request_is_served_here_if_the_holder_is_dead(
    nodes: tuple[Daemon, Daemon], http: httpx.AsyncClient
) -> None:
    """Nothing listens at the holder's address: the request is served again with the body that was read."""
    first, second = nodes
    headers = {"Idempotency-Key": "order-8"}
    await http.post(f"{first.address().http_url}tools/sim_effect", json={"text": "first"}, headers=headers)
    node_of(first).address = node_of(first).address.replace(str(first.http.port), "1")
    answer = await http.post(f"{second.address().http_url}tools/sim_effect", json={"text": "first"}, headers=headers)
    assert answer.status_code == 200
    assert node_of(first).state == "dead"


async def test_a_request_is_served_here_once_its_silent_holder_is_dead(
    nodes: tuple[Daemon, Daemon], http: httpx.AsyncClient
) -> None:
    """A paused holder keeps the connection open and does not answer, so the request must not wait for it."""
    first, second = nodes
    headers = {"Idempotency-Key": "order-9"}
    await http.post(f"{first.address().http_url}tools/sim_effect", json={"text": "first"}, headers=headers)
    relayed = asyncio.Event()

    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"first")
        relayed.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(keep_silent, "127.0.0.1", 0) as paused:
        row = node_of(first)
        row.address = row.address.replace(str(first.http.port), str(paused.sockets[0].getsockname()[1]))
        url = f"{second.address().http_url}tools/sim_effect"
        asking = asyncio.create_task(http.post(url, json={"text": "first"}, headers=headers))
        await relayed.wait()
        row.left_s = -1.0
        assert second.cluster is not None
        await second.cluster.membership.refresh()
        assert (await asking).status_code == 200
    assert (row.state, (second.state.path / "sim_effect.log").read_text()) == ("dead", "first\n")


@pytest.mark.parametrize("signature", ["", "0" * 64])
async def test_peer_paths_need_a_signature(
    nodes: tuple[Daemon, Daemon], http: httpx.AsyncClient, signature: str
) -> None:
    """The daemon's token is not enough, and neither is the signature of another request or process."""
    url = f"{nodes[0].address().http_url}peer/calls"
    key = PeerKey("a-secret-of-all-nodes")
    wrong = [signature, key.sign("b0", PEER_HEADER, "/calls", "{}"), key.sign("a0", PEER_HEADER, "/summary", "{}")]
    for each in wrong:
        assert (await http.post(url, content="{}", headers={PEER_HEADER: each})).status_code == 403
    right = key.sign("a0", PEER_HEADER, "/calls", "{}")
    assert (await http.post(url, content="{}", headers={PEER_HEADER: right})).json() == {
        "running": [],
        "connections": 0,
    }


async def test_status_lists_the_nodes(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """Each node with its state, its connections and its calls; a node that does not answer without these."""
    first, second = nodes
    await running_call(first, greet)
    client = await greet(second)
    rows: dict[str, Any] = {row["name"]: row for row in (await client.call("1", "status"))["structured"]["nodes"]}
    assert (rows["a"]["state"], rows["a"]["calls"], rows["a"]["connections"], rows["a"]["this"]) == (
        "live",
        1,
        1,
        False,
    )
    assert (rows["b"]["this"], rows["b"]["connections"]) == (True, 1)
    node_of(first).address = node_of(first).address.replace(str(first.http.port), "1")
    assert second.cluster is not None
    await second.cluster.membership.refresh()
    rows = {row["name"]: row for row in (await client.call("2", "status"))["structured"]["nodes"]}
    assert "calls" not in rows["a"]


@pytest.mark.parametrize(("left_s", "state"), [(74.0, "dead"), (76.0, "live")])
async def test_a_node_that_does_not_answer_a_check(
    silent_port: int, start_node: StartNode, left_s: float, state: str
) -> None:
    """It is declared dead if it has also missed its heartbeats: it is not enough that it is slow."""
    first, second = await start_node("a"), await start_node("b")
    assert second.cluster is not None
    node_of(first).left_s = left_s
    await make_silent(first, silent_port, seen_by=second)
    await second.cluster.peers.check("a0")
    assert node_of(first).state == state


async def test_a_node_that_answers_a_check_is_alive(nodes: tuple[Daemon, Daemon]) -> None:
    """Although it has missed its heartbeats, because it does not reach its database."""
    first, second = nodes
    assert second.cluster is not None
    node_of(first).left_s = 1.0
    await second.cluster.peers.check("a0")
    assert node_of(first).state == "live"


async def test_nodes_that_have_missed_their_heartbeats_are_checked() -> None:
    """At each reading of the nodes."""
    cluster = MemoryCluster()
    own, late, renewed = (MemoryNode(cluster, epoch, epoch) for epoch in ("own0", "late0", "renewed0"))
    late.left_s = 74.0
    membership, checked = Membership(own), asyncio.Queue[str]()
    membership.check_node = checked.put
    running = asyncio.create_task(membership.run())
    assert await checked.get() == late.epoch
    assert checked.empty()
    assert renewed.state == "live"
    running.cancel()


async def test_different_settings_are_a_problem(start_node: StartNode) -> None:
    """Both nodes name the settings that differ, but neither names nor values of secrets' content."""
    first = await start_node("a", TOOLD_MAX_RUNNING="7", TOOLD_KIMI_API_KEY="sk-one")
    second = await start_node("b", TOOLD_KIMI_API_KEY="sk-two")
    for node, other in ((first, "b"), (second, "a")):
        assert node.cluster is not None
        await node.cluster.membership.refresh()
        (problem,) = [each for each in node.cluster.problems if other in each.detail]
        assert "max_running" in problem.detail
        assert "kimi_api_key" in problem.detail
        assert "sk-" not in problem.detail


async def test_equal_settings_are_no_problem(nodes: tuple[Daemon, Daemon]) -> None:
    """Names, ports, directories and keys of the audit chain aside, equal nodes report nothing."""
    for node in nodes:
        assert node.cluster is not None
        names = [each.detail.partition("values of: ")[2] for each in node.cluster.problems]
        assert names == ["audit.key"]


async def test_fields_of_a_newer_version_are_ignored(nodes: tuple[Daemon, Daemon], http: httpx.AsyncClient) -> None:
    """In requests between nodes, and in what nodes announce: nodes of adjacent versions run side by side."""
    first, second = nodes
    assert first.cluster is not None
    body = msgspec.json.encode({"call_id": "a0-1", "principal": "local", "added": {"later": True}})
    signature = first.cluster.key.sign(second.cluster.membership.epoch, PEER_HEADER, "/calls/cancel", body.decode())  # type: ignore[union-attr]
    url = f"{second.address().http_url}peer/calls/cancel"
    answer = await http.post(url, content=body, headers={PEER_HEADER: signature})
    assert (answer.status_code, answer.json()) == (200, {"cancelled": False})
    row = node_of(second)
    row.details = msgspec.json.encode({**msgspec.json.decode(row.details), "added": 1}).decode()
    row.address = msgspec.json.encode({**msgspec.json.decode(row.address), "added": 1}).decode()
    await first.cluster.membership.refresh()
    (summary,) = [each for each in await first.cluster.rows() if not each["this"]]
    assert (summary["name"], summary["answers"]) == ("b", True)
    assert summary["version"]
