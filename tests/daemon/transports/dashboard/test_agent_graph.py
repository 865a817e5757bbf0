"""The graph of an agent's definition."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from toold.daemon.transports.dashboard.agent_graph import agent_graph, role_rows
from toold.dashboard import GraphEdge, GraphNode, layout
from toold.tools import Agent

ROLES = [{"name": name, "prompt": "x"} for name in ("one", "two", "three")]

FLOWS: list[tuple[dict[str, Any], set[str]]] = [
    ({"execution_type": "single", "roles": ROLES[:1]}, {"request>one", "one>answer"}),
    ({"execution_type": "sequential"}, {"request>one", "one>two", "two>three", "three>answer"}),
    (
        {"execution_type": "loop", "max_iterations": 7},
        {"request>one", "one>two", "two>three", "three>answer", "three>one up to 7 times"},
    ),
    (
        {"execution_type": "parallel", "aggregator_role": "three"},
        {"request>one", "request>two", "one>three", "two>three", "three>answer"},
    ),
    (
        {"execution_type": "coordinator", "coordinator_role": "one"},
        {"request>one", "one>answer", "one>two", "one>three"},
    ),
    (
        {"execution_type": "hub-spoke", "hub_role": "one"},
        {"request>one", "one>two", "one>three", "two>answer", "three>answer"},
    ),
    (
        {
            "execution_type": "hierarchical",
            "coordinator_role": "one",
            "roles": [{**ROLES[0], "workers": ["two"]}, {**ROLES[1], "workers": ["three"]}, ROLES[2]],
        },
        {"request>one", "one>answer", "one>two", "two>three"},
    ),
    (
        {"execution_type": "custom", "custom": "my_code"},
        {"request>code", "code>answer", "code>one", "code>two", "code>three"},
    ),
]


def agent(fields: dict[str, Any]) -> Agent:
    return Agent.model_validate({"name": "a", "description": "x", "roles": ROLES, **fields})


@pytest.mark.parametrize(("fields", "expected"), FLOWS, ids=[fields["execution_type"] for fields, _ in FLOWS])
def test_each_flow_has_its_edges(fields: dict[str, Any], expected: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """From the request over the roles to the answer, as the flow runs them."""
    drawn: list[GraphEdge] = []

    def noted(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> dict[str, Any]:
        drawn.extend(edges)
        return layout(nodes, edges)

    monkeypatch.setattr("toold.daemon.transports.dashboard.agent_graph.layout", noted)
    graph = agent_graph(agent(fields))
    shown = {f"{edge.source}>{edge.target} {edge.label}".replace("(", "").replace(")", "").strip() for edge in drawn}
    assert shown == expected
    assert graph["explained"]


@pytest.mark.parametrize("fields", [fields for fields, _ in FLOWS], ids=lambda fields: fields["execution_type"])
def test_nodes_do_not_overlap_and_fit(fields: dict[str, Any]) -> None:
    """All nodes are in the picture, apart from each other."""
    graph = agent_graph(agent(fields))
    for node in graph["nodes"]:
        assert 0 <= node["x"] <= graph["width"] - node["width"]
        assert 0 <= node["y"] <= graph["height"] - node["height"]
    for one, other in combinations(graph["nodes"], 2):
        apart_x = abs(one["x"] - other["x"]) >= one["width"]
        apart_y = abs(one["y"] - other["y"]) >= one["height"]
        assert apart_x or apart_y


def test_a_column_without_nodes_takes_no_place() -> None:
    """Columns are numbered, not placed."""
    graph = layout([GraphNode("a", 0, "a"), GraphNode("b", 9, "b")], [GraphEdge("a", "b")])
    assert graph["nodes"][1]["x"] - graph["nodes"][0]["x"] < 300


def test_the_roles_have_what_they_may() -> None:
    """Grants, approvals and models, also those of the agent."""
    (row,) = role_rows(
        Agent.model_validate(
            {"name": "a", "description": "x", "prompt": "p", "model": "k2", "tools": ["echo"], "approve": ["echo"]}
            | {"tools": [{"name": "echo"}]}
        )
    )
    assert (row["model"], row["tools"], row["approve"]) == ("k2", ["echo"], "echo")
