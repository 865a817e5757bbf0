"""Two nodes on one PostgreSQL database, as processes: what clients see when a node or the database fails."""

import asyncio
import json
import secrets
import signal
from typing import Any

import pytest
from tests.chaos.cluster_nodes import FENCED, Database, DatabaseLink
from tests.e2e.cluster.conftest import Nodes, call_repeatedly, closed_with, ended, open_client, resumed, written
from websockets.exceptions import ConnectionClosed


async def test_a_killed_node_is_taken_over_at_once(nodes: Nodes) -> None:
    """Within one hello, long before the lease ends: the answers are there, the call that ran has an unknown outcome,
    it does not run again, and each call has one audit row.
    """
    first, second = await nodes.start("a", TOOLD_LEASE_S="60"), await nodes.start("b", TOOLD_LEASE_S="60")
    peer = await open_client(first)
    answer = await peer.call("1", "sim_effect", text="one")
    await peer.send(op="call_tool", request_id="2", name="sim_effect", arguments={"text": "two", "delay_ms": 60_000})
    while written(first) != ["one", "two"]:
        await asyncio.sleep(0.01)
    first.process.kill()
    back = await open_client(second, resume={"key": peer.ack["resume_key"]})
    assert (back.ack["ok"], back.ack["resumed"]) == (True, True)
    replayed = {each["request_id"]: each for each in [await back.receive(), await back.receive()]}
    assert replayed["1"]["outputs"] == answer["outputs"]
    assert (replayed["2"]["error"]["code"], replayed["2"]["error"]["executed"]) == ("OUTCOME_UNKNOWN", "maybe")
    again = await back.call("2", "sim_effect", text="two", delay_ms=60_000)
    assert again["error"]["code"] == "OUTCOME_UNKNOWN"
    assert (await back.call("3", "sim_effect", text="three"))["error"] is None
    assert (written(first), written(second)) == (["one", "two"], ["three"])
    rows = nodes.database.sql("SELECT outcome FROM toold.call ORDER BY request_id").split()
    assert rows == ["ok", "OUTCOME_UNKNOWN", "ok"]


async def test_a_paused_node_loses_its_sessions_before_its_lease_ends_and_exits(nodes: Nodes) -> None:
    """It does not answer, and has missed its heartbeats. When it continues, it answers nothing: exit code 70."""
    first, second = await nodes.start("a", TOOLD_LEASE_S="60"), await nodes.start("b", TOOLD_LEASE_S="60")
    peer = await open_client(first)
    await peer.call("1", "sim_effect", text="one")
    await peer.send(op="call_tool", request_id="2", name="sim_effect", arguments={"text": "two", "delay_ms": 300})
    while written(first) != ["one", "two"]:
        await asyncio.sleep(0.01)
    first.process.send_signal(signal.SIGSTOP)
    row = "FROM toold.node WHERE name = 'a'"
    nodes.database.sql("UPDATE toold.node SET until = until - interval '46 s' WHERE name = 'a'")  # as if 46 s later
    assert nodes.database.sql(f"SELECT state {row}") == "live"
    back = await resumed(second, peer)
    assert nodes.database.sql(f"SELECT state, ended_at < until {row}") == "dead|t"
    replayed = {each["request_id"]: each for each in [await back.receive(), await back.receive()]}
    assert replayed["2"]["error"]["code"] == "OUTCOME_UNKNOWN"
    first.process.send_signal(signal.SIGCONT)
    assert await ended(first) == FENCED
    told = []
    try:
        while True:
            told.append(await peer.receive())
    except ConnectionClosed:
        pass
    assert [frame for frame in told if frame["op"] == "call_tool_res"] == []


async def test_a_drained_node_passes_its_sessions_on(nodes: Nodes) -> None:
    """Its running call ends and is answered; then any other node has the session, before the lease ends."""
    first, second = await nodes.start("a", TOOLD_LEASE_S="60"), await nodes.start("b", TOOLD_LEASE_S="60")
    peer = await open_client(first)
    await peer.send(op="call_tool", request_id="1", name="sim_effect", arguments={"text": "one", "delay_ms": 500})
    while written(first) != ["one"]:
        await asyncio.sleep(0.01)
    first.process.send_signal(signal.SIGTERM)
    assert (await peer.until("call_tool_res"))["error"] is None
    assert await closed_with(peer) == 1012
    back = await resumed(second, peer)
    assert (await back.receive())["request_id"] == "1"
    assert await ended(first) == 0


async def test_without_the_database_local_calls_continue(nodes: Nodes) -> None:
    """Others are refused at once, executed `no`. After the lease, connections that can be resumed are closed; those
    that cannot be go on. When the database is back, the node continues, unless another one has declared it dead.
    """
    nodes.links["a"] = await DatabaseLink(nodes.database).open()
    node = await nodes.start("a")
    peer = await open_client(node)
    plain = await open_client(node, features=[])
    with nodes.links["a"].cut(silent=False):
        # The start of the first call may have been sent to the database: its answer waits until that is certain.
        calls = asyncio.create_task(call_repeatedly(peer))
        refused = await peer.until("call_tool_res")
        calls.cancel()
        assert (refused["error"]["code"], refused["error"]["executed"]) == ("SERVICE_UNAVAILABLE", "no")
        assert (await peer.call("local", "echo", text="here"))["error"] is None
        assert await closed_with(peer) == 1012
        assert (await plain.call("3", "echo", text="here"))["error"] is None
        assert not (await open_client(node)).ack["ok"]
    back = await resumed(node, peer)
    assert (await back.call("4", "sim_effect", text="again"))["error"] is None


async def test_an_answer_waits_for_the_database(nodes: Nodes) -> None:
    """A call whose tool returns while the database restarts is answered once its end is stored."""
    node = await nodes.start("a", TOOLD_LEASE_S="60")
    peer = await open_client(node)
    await peer.send(op="call_tool", request_id="1", name="sim_effect", arguments={"text": "one", "delay_ms": 300})
    while written(node) != ["one"]:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(nodes.database.stop, kill=True)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.6):  # longer than the call
            await peer.until("call_tool_res", "1")
    await asyncio.to_thread(nodes.database.start)
    assert (await peer.until("call_tool_res", "1"))["error"] is None
    assert nodes.database.sql("SELECT outcome FROM toold.call") == "ok"


async def test_a_detached_call_is_adopted(nodes: Nodes) -> None:
    """When its node is killed, another one continues it, without repeating a write; its id finds it there."""
    first, second = await nodes.start("a", TOOLD_LEASE_S="60"), await nodes.start("b", TOOLD_LEASE_S="60")
    peer = await open_client(first)
    items = [{"text": f"item-{number}", "delay_ms": 100} for number in range(10)]
    answer = await peer.call("1", "execute_batch", tool_name="sim_effect", items=items, detach=True)
    call_id = answer["structured"]["call_id"]
    while len(written(first)) < 3:
        await asyncio.sleep(0.01)
    first.process.kill()
    other = await open_client(second, resume={"key": peer.ack["resume_key"]})
    async with asyncio.timeout(60):
        while True:
            state = (await other.call(secrets.token_hex(4), "call_result", call_id=call_id))["structured"]
            if state["state"] not in {"waiting", "running", "ending"}:
                break
            await asyncio.sleep(0.05)
    assert state["state"] == "done"
    lines = written(first) + written(second)
    assert len(lines) == len(set(lines))


async def test_a_clock_an_hour_off_changes_nothing(nodes: Nodes) -> None:
    """Leases and takeovers are by the clock of the database, and by a clock that nothing sets."""
    first = await nodes.start("a")
    second = await nodes.start("b", fast_clock=True)
    peer = await open_client(first)
    await peer.call("1", "sim_effect", text="one")
    back = await open_client(second, resume={"key": peer.ack["resume_key"]})
    assert (await back.until("call_tool_res"))["request_id"] == "1"
    first.process.kill()
    taken = await resumed(second, peer)
    assert (await taken.call("2", "sim_effect", text="two"))["error"] is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"TOOLD_STORE": "postgresql://127.0.0.1:1/toold"}, "cannot connect"),
        ({"TOOLD_CLUSTER_SECRET": ""}, "cluster_secret"),
        ({"TOOLD_HOST": "::"}, "peer_host"),
    ],
)
def test_a_wrong_configuration_prevents_the_start(
    command: Any, database: Database, settings: dict[str, str], reason: str
) -> None:
    """One line says what is wrong."""
    given = {"TOOLD_STORE": database.url, "TOOLD_CLUSTER_SECRET": "a-secret-of-all-nodes", **settings}
    done = command("serve", "--port", "0", "--http-port", "0", **given)
    assert done.returncode in {1, 2}
    assert reason in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


async def test_a_name_is_used_once(nodes: Nodes, command: Any) -> None:
    """A second process with the name of a running node does not start; after a crash the name is free at once."""
    first = await nodes.start("a")
    copied = {name: value for name, value in first.env.items() if name.startswith("TOOLD_")}
    state = first.state.parent / "other"
    state.mkdir()
    (state / "audit.key").write_text((first.state / "audit.key").read_text())
    (state / "audit.key").chmod(0o600)
    refused = await asyncio.to_thread(
        lambda: command("serve", "--port", "0", "--http-port", "0", **copied | {"TOOLD_STATE_DIR": str(state)})
    )
    assert refused.returncode == 1
    assert "a node with the name 'a' is running" in refused.stderr
    first.process.kill()
    await ended(first)
    again = await nodes.start("a")
    assert again.process.poll() is None


async def test_the_doctor_checks_the_shared_database(nodes: Nodes, command: Any) -> None:
    """It names the database, its durability, its clock, the other nodes, and settings that differ from theirs."""
    node = await nodes.start("a", TOOLD_MAX_RUNNING="7")
    copied = {name: value for name, value in node.env.items() if name.startswith("TOOLD_")}
    copied |= {"TOOLD_NODE_NAME": "b", "TOOLD_MAX_RUNNING": "8", "TOOLD_STATE_DIR": str(node.state.parent / "other")}
    report = await asyncio.to_thread(lambda: command("doctor", "--json", **copied))
    checks = {check["name"]: check for check in json.loads(report.stdout)}
    assert "PostgreSQL" in checks["store"]["message"]
    assert checks["store durability"]["status"] == "fail"  # the server of the tests runs without fsync
    assert checks["store connection"]["status"] == "ok"
    assert checks["clock"]["status"] == "ok"
    assert "a (live)" in checks["node"]["message"]
    assert "max_running" in checks["node settings"]["message"]
