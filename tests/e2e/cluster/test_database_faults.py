"""Nodes whose database is slow, full, at its connection limit or replaced by a replica; databases that they refuse."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.chaos.cluster_nodes import FENCED, Database, DatabaseLink
from tests.e2e.cluster.conftest import LEASE_S, Nodes, call_repeatedly, ended, open_client, resumed, written
from tests.e2e.conftest import Command, Peer, Process
from tests.postgres_cluster import Cluster, running_cluster, until

ROLE_S = """
CREATE ROLE {role} LOGIN;
GRANT USAGE ON SCHEMA toold TO {role};
GRANT ALL ON ALL TABLES IN SCHEMA toold TO {role};
GRANT ALL ON ALL SEQUENCES IN SCHEMA toold TO {role};
"""
"""A role with the rights that a node needs."""
END_CONNECTIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"
FULL = """
CREATE FUNCTION toold.no_space() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_space BEFORE UPDATE ON toold.node EXECUTE FUNCTION toold.no_space();
"""
"""Simulates a full disk: each commit of a node fails with the error of one (53100)."""


@contextmanager
def role(database: Database) -> Iterator[str]:
    """A role of the nodes, which is not a superuser."""
    name = f"node_of_{database.name}"
    database.sql(ROLE_S.format(role=name))
    yield name
    database.sql(f"DROP OWNED BY {name}; DROP ROLE {name}")


async def refused_without_effect(peer: Peer) -> dict[str, Any]:
    """The first refusal among repeated calls. Those before it may have been sent to the database: they wait."""
    calls = asyncio.create_task(call_repeatedly(peer))
    try:
        while True:
            answer = await peer.until("call_tool_res")
            if answer["error"] is not None:
                return answer
    finally:
        calls.cancel()


async def test_a_slow_database_delays_answers_and_nothing_else(nodes: Nodes) -> None:
    """Each call waits for its commits, a local one does not, and the lease is kept beyond its length."""
    nodes.links["a"] = await DatabaseLink(nodes.database).open()
    node = await nodes.start("a")
    peer = await open_client(node)
    loop = asyncio.get_running_loop()
    with nodes.links["a"].slow(0.1):
        until_s = loop.time() + 2 * LEASE_S
        while loop.time() < until_s:
            name = str(loop.time())
            await peer.send(op="call_tool", request_id=name, name="sim_effect", arguments={"text": name})
            await peer.send(op="call_tool", request_id=f"local {name}", name="echo", arguments={"text": "here"})
            answers = [await peer.until("call_tool_res"), await peer.until("call_tool_res")]
            assert [each["request_id"] for each in answers] == [f"local {name}", name]
            assert [each["error"] for each in answers] == [None, None]
    assert node.process.poll() is None


async def test_a_full_database_is_like_one_that_is_away(nodes: Nodes) -> None:
    """SIMULATED by a trigger. Calls are refused, executed `no`; a call that ran is answered once there is space."""
    node = await nodes.start("a", TOOLD_LEASE_S="60")
    peer = await open_client(node)
    await peer.send(op="call_tool", request_id="1", name="sim_effect", arguments={"text": "one", "delay_ms": 300})
    while written(node) != ["one"]:
        await asyncio.sleep(0.01)
    nodes.database.sql(FULL)
    refused = await refused_without_effect(peer)
    assert (refused["error"]["code"], refused["error"]["executed"]) == ("SERVICE_UNAVAILABLE", "no")
    assert refused["request_id"] not in written(node)
    assert (await peer.call("local", "echo", text="here"))["error"] is None
    nodes.database.sql("DROP TRIGGER no_space ON toold.node")
    assert (await peer.until("call_tool_res", "1"))["error"] is None
    assert (await peer.call("2", "sim_effect", text="two"))["error"] is None
    assert nodes.database.sql("SELECT outcome FROM toold.call WHERE request_id = '\"1\"'") == "ok"


async def test_a_database_at_its_connection_limit_is_like_one_that_is_away(nodes: Nodes, command: Command) -> None:
    """A node that loses its connections, and gets no others, refuses calls; another one does not start. Afterwards the
    node continues.
    """
    with role(nodes.database) as name:
        url = nodes.database.url_at(nodes.database.socket.parent, role=name)
        node = await nodes.start("a", TOOLD_LEASE_S="60", TOOLD_STORE=url)
        peer = await open_client(node)
        assert (await peer.call("1", "sim_effect", text="one"))["error"] is None
        nodes.database.sql(f"ALTER ROLE {name} CONNECTION LIMIT 0")
        nodes.database.sql(END_CONNECTIONS.format(role=name))
        refused = await refused_without_effect(peer)
        assert (refused["error"]["code"], refused["error"]["executed"]) == ("SERVICE_UNAVAILABLE", "no")
        assert (await peer.call("local", "echo", text="here"))["error"] is None
        again = await second_start(command, node, TOOLD_NODE_NAME="b")
        assert (again[0], "too many connections" in again[1]) == (1, True), again
        nodes.database.sql(f"ALTER ROLE {name} CONNECTION LIMIT -1")
        async with asyncio.timeout(60):
            while (await peer.call(str(asyncio.get_running_loop().time()), "sim_effect", text="x"))["error"]:
                await asyncio.sleep(0.1)
        node.process.kill()
        await ended(node)


async def second_start(command: Command, node: Process, **settings: str) -> tuple[int, str]:
    """The exit code and the errors of a start with the settings of a node, except for these, and with its files."""
    given = {name: value for name, value in node.env.items() if name.startswith("TOOLD_")}
    state = node.state.parent / "second"
    state.mkdir(exist_ok=True)
    (state / "audit.key").write_text((node.state / "audit.key").read_text())
    (state / "audit.key").chmod(0o600)
    given |= {"TOOLD_STATE_DIR": str(state), **settings}
    done = await asyncio.to_thread(lambda: command("serve", "--port", "0", "--http-port", "0", **given))
    return done.returncode, done.stderr


async def test_a_node_without_rights_does_not_start(nodes: Nodes, command: Command) -> None:
    """One line says what it may not do."""
    node = await nodes.start("a")
    nodes.database.sql(f"CREATE ROLE stranger_{nodes.database.name} LOGIN")
    try:
        url = nodes.database.url_at(nodes.database.socket.parent, role=f"stranger_{nodes.database.name}")
        code, errors = await second_start(command, node, TOOLD_NODE_NAME="b", TOOLD_STORE=url)
    finally:
        nodes.database.sql(f"DROP ROLE stranger_{nodes.database.name}")
    assert code == 1
    assert "permission denied for schema toold" in errors
    assert len(errors.strip().splitlines()) == 1


async def test_the_database_of_another_service_is_refused(nodes: Nodes, command: Command, tmp_path: Path) -> None:
    """Its nodes have another audit key. One line says so, and the nodes of that service do not notice."""
    node = await nodes.start("a")
    state = tmp_path / "stranger"
    state.mkdir()
    (state / "audit.key").write_text("0" * 64)
    (state / "audit.key").chmod(0o600)
    given = {name: value for name, value in node.env.items() if name.startswith("TOOLD_")}
    given |= {"TOOLD_STATE_DIR": str(state), "TOOLD_NODE_NAME": "b"}
    done = await asyncio.to_thread(lambda: command("serve", "--port", "0", "--http-port", "0", **given))
    assert done.returncode == 1
    assert "belongs to another service" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert (await (await open_client(node)).call("1", "sim_effect", text="one"))["error"] is None


async def test_different_settings_are_reported_at_the_start(nodes: Nodes) -> None:
    """The second node logs what differs, and both report it in their status."""
    first = await nodes.start("a", TOOLD_MAX_RUNNING="7")
    second = await nodes.start("b", TOOLD_MAX_RUNNING="8")
    assert "node a has other values of: max_running" in second.logged()
    for node, other in ((first, "b"), (second, "a")):
        peer = await open_client(node)
        async with asyncio.timeout(20):
            while not any(f"node {other} has other values of: max_running" in each for each in await problems(peer)):
                await asyncio.sleep(0.1)


async def problems(peer: Peer) -> list[str]:
    """The problems that a node reports to its operator."""
    return list((await peer.status())["problems"])


# --- failover --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def replicated() -> AsyncIterator[tuple[Cluster, Cluster, str]]:
    """A server, a replica of it, and the address of a database at both."""
    with running_cluster() as primary, primary.standby() as replica:
        primary.sql("CREATE DATABASE toold")
        database = Database(primary, "toold")
        await database.migrate()
        yield primary, replica, database.url_at(primary.socket_directory, replica.socket_directory)


async def test_a_promoted_replica_replaces_the_database(starts_processes: None, tmp_path: Path) -> None:
    """With synchronous replication nothing is lost: a call that ran meanwhile is answered, sessions and stored answers
    are there, and each call has one audit row.
    """
    async with replicated() as (primary, replica, url), cluster_of(primary, tmp_path) as nodes:
        first = await nodes.start("a", TOOLD_STORE=url, TOOLD_LEASE_S="60")
        second = await nodes.start("b", TOOLD_STORE=url, TOOLD_LEASE_S="60")
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")
        until(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync")
        peer = await open_client(first)
        assert (await peer.call("1", "sim_effect", text="one"))["error"] is None
        await peer.send(op="call_tool", request_id="2", name="sim_effect", arguments={"text": "two", "delay_ms": 300})
        while written(first) != ["one", "two"]:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(primary.stop, signal.SIGQUIT)
        await asyncio.to_thread(replica.promote)
        assert (await peer.until("call_tool_res", "2"))["error"] is None
        assert (await peer.call("3", "sim_effect", text="three"))["error"] is None
        first.process.kill()
        back = await resumed(second, peer)
        assert (await back.call("1", "sim_effect", text="one"))["metadata"]["replayed"]
        assert (await back.call("4", "sim_effect", text="four"))["error"] is None
        rows = replica.sql("SELECT outcome FROM toold.call ORDER BY request_id", database="toold").split()
        assert rows == ["ok"] * 4
        await asyncio.to_thread(primary.start)


async def test_a_replica_that_lacks_commits_ends_the_nodes(starts_processes: None, tmp_path: Path) -> None:
    """Without synchronous replication, a node that sent an answer that the new database does not have ends with 70. It
    starts again, and its sessions have what the database has.
    """
    async with replicated() as (primary, replica, url), cluster_of(primary, tmp_path) as nodes:
        node = await nodes.start("a", TOOLD_STORE=url, TOOLD_LEASE_S="60")
        peer = await open_client(node)
        assert (await peer.call("1", "sim_effect", text="one"))["error"] is None
        written_until = primary.sql("SELECT pg_current_wal_lsn()")
        until(lambda: replica.sql(f"SELECT pg_last_wal_replay_lsn() >= '{written_until}'") == "t")
        replica.sql("ALTER SYSTEM SET primary_conninfo = ''")
        replica.sql("SELECT pg_reload_conf()")
        until(lambda: primary.sql("SELECT count(*) FROM pg_stat_replication") == "0")
        assert (await peer.call("2", "sim_effect", text="two"))["error"] is None
        await asyncio.to_thread(primary.stop, signal.SIGQUIT)
        await asyncio.to_thread(replica.promote)
        await peer.send(op="call_tool", request_id="3", name="sim_effect", arguments={"text": "three"})
        assert await ended(node) == FENCED
        assert "lost acknowledged commits" in node.logged()
        again = await nodes.start("a", TOOLD_STORE=url)
        back = await resumed(again, peer)
        assert (await back.receive())["request_id"] == "1"
        assert "three" not in written(node)
        await asyncio.to_thread(primary.start)


@asynccontextmanager
async def cluster_of(primary: Cluster, directory: Path) -> AsyncIterator[Nodes]:
    """Starts nodes; kills those that still run at the end."""
    nodes = Nodes(directory, Database(primary, "toold"))
    try:
        yield nodes
    finally:
        await nodes.end()
