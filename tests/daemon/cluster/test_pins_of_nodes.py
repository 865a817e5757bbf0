"""Changes of sources and their approval, at two nodes that have the same source."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.waiting import until
from toold.daemon.app import Daemon
from toold.sources import QuarantinedVersion
from toold.sources.mcp import mcp_source

from .conftest import FrameClient, Greet, StartNode

pytestmark = pytest.mark.process
PROGRAM = Path(__file__).parents[2] / "sources" / "mcp" / "plain_program.py"


def waiting(node: Daemon) -> list[QuarantinedVersion]:
    return list(node.sources.waiting("s"))


@pytest.fixture
async def nodes(
    start_node: StartNode, starts_processes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Daemon, Daemon]:
    """Two nodes, each with a program as the source ``s``. They list its tools only on request."""
    monkeypatch.setattr(mcp_source, "LIST_INTERVAL_S", 86_400.0)
    (tmp_path / "behaviour.json").write_text("{}")
    command = [sys.executable, "-S", str(PROGRAM), "--state", str(tmp_path / "behaviour.json")]
    (tmp_path / "toold.toml").write_text(f'[sources.s]\ntype = "mcp"\ncommand = {json.dumps(command)}\n')
    pair = await start_node("a"), await start_node("b")
    for node in pair:
        await until(lambda node=node: node.sources.states[0].state == "ready")  # type: ignore[misc]
    return pair


@pytest.fixture
async def clients(nodes: tuple[Daemon, Daemon], greet: Greet) -> tuple[FrameClient, FrameClient]:
    return await greet(nodes[0]), await greet(nodes[1])


async def test_a_change_at_one_node_is_seen_and_approved_at_the_other(
    nodes: tuple[Daemon, Daemon], clients: tuple[FrameClient, FrameClient]
) -> None:
    """The programs have a new tool; one announces it to its node. The approval at the other node holds at both."""
    assert (await clients[1].call("1", "grow", tell=False))["ok"]
    assert waiting(nodes[1]) == []
    assert (await clients[0].call("1", "grow"))["ok"]
    await until(lambda: all(waiting(node) for node in nodes))
    (version,) = waiting(nodes[1])
    assert version.name == "grown"
    await nodes[1].sources.approve("s", "grown", version.digest)
    await until(lambda: not any(waiting(node) for node in nodes))


async def test_an_approval_elsewhere_of_another_version_is_reported(
    nodes: tuple[Daemon, Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator gets the advice to look again; the node knows then what is approved."""

    async def reload_pins(_: Mapping[str, int]) -> list[str]:
        return []

    for node in nodes:  # they learn nothing from each other before the approval
        monkeypatch.setattr(node.sources, "reload_pins", reload_pins)
        monkeypatch.setattr(node.sources, "refresh_one", lambda _: None)
    first, second = nodes
    seen = await changed(first, "second"), await changed(second, "third")
    await first.sources.approve("s", "echo", seen[0].digest)
    with pytest.raises(LookupError, match="another version of 'echo' was approved meanwhile for source s; review"):
        await second.sources.approve("s", "echo", seen[1].digest)
    assert "-description: second" in waiting_version(second).diff


async def changed(node: Daemon, description: str) -> QuarantinedVersion:
    """The version of ``echo`` that waits after its description has changed."""
    catalog = node.sources._active["s"].source._catalog  # type: ignore[attr-defined]
    definitions = [
        type(tool)(tool.name, description if tool.name == "echo" else tool.description, tool.input_schema)
        for tool in catalog.listing.tools
    ]
    await catalog.update(type(catalog.listing)(definitions))
    return waiting_version(node)


def waiting_version(node: Daemon) -> QuarantinedVersion:
    return next(version for version in waiting(node) if version.name == "echo")
