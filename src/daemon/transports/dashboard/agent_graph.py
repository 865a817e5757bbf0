"""The graph of an agent's definition: the request, the roles in the order in which they run, and the answer. Pure."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from ....dashboard import GraphEdge, GraphNode, layout
from ....tools import Agent, Role

_REQUEST, _ANSWER = "(request)", "(answer)"
_EXPLAINED: Final = {
    "single": "One role answers.",
    "sequential": "The roles run one after the other; the last one's answer is the agent's.",
    "parallel": "The roles run at the same time.",
    "loop": "The roles run one after the other, repeatedly.",
    "coordinator": "One role answers, and delegates to the others.",
    "hub-spoke": "One role chooses which of the others answers.",
    "hierarchical": "Roles delegate to those below them.",
    "custom": "The code of an installed package runs the roles.",
}


def agent_graph(agent: Agent) -> dict[str, Any]:
    """Returns the layout (``graph_layout.layout``) with ``explained``: the flow in a sentence."""
    nodes, edges = _FLOWS[agent.execution_type](agent)
    return {**layout(nodes, edges), "explained": _EXPLAINED[agent.execution_type]}


Parts = tuple[list[GraphNode], list[GraphEdge]]


def _node(agent: Agent, role: Role, column: int) -> GraphNode:
    granted = [*map(str, role.tools), *role.knowledge, *role.optional_knowledge, *role.agents]
    can = ["asks"] if role.ask else []
    can += ["needs approval"] if role.approve else []
    can += [f"calls {', '.join(granted)}"] if granted else []
    return GraphNode(role.name, column, role.name, (role.model or agent.model or "default model", ", ".join(can)))


def _ends(last: int) -> list[GraphNode]:
    return [
        GraphNode(_REQUEST, 0, "request", kind="end"),
        GraphNode(_ANSWER, last, "answer", kind="end"),
    ]


def _chain(agent: Agent) -> Parts:
    """Roles one after the other."""
    roles = agent.roles
    nodes = [*_ends(len(roles) + 1), *(_node(agent, role, place + 1) for place, role in enumerate(roles))]
    order = [_REQUEST, *(role.name for role in roles), _ANSWER]
    edges = [GraphEdge(before, after) for before, after in itertools.pairwise(order)]
    if agent.execution_type == "loop":
        label = f"up to {agent.max_iterations} times" + (f", until {agent.stop_when}" if agent.stop_when else "")
        edges.append(GraphEdge(roles[-1].name, roles[0].name, "repeats", label[:60]))
    return nodes, edges


def _parallel(agent: Agent) -> Parts:
    roles = agent.others(agent.parallel_roles, agent.aggregator_role)
    last = 3 if agent.aggregator_role else 2
    nodes = [*_ends(last), *(_node(agent, role, 1) for role in roles)]
    target = _ANSWER
    edges: list[GraphEdge] = []
    if agent.aggregator_role is not None:
        target = agent.aggregator_role
        nodes.append(_node(agent, agent.role(target), 2))
        edges.append(GraphEdge(target, _ANSWER))
    for role in roles:
        edges += [GraphEdge(_REQUEST, role.name), GraphEdge(role.name, target)]
    return nodes, edges


def _tree(agent: Agent) -> Parts:
    """One role answers, and delegates to those below it, which may delegate further."""
    first = agent.coordinator_role or agent.roles[0].name
    nodes = [*_ends(2), _node(agent, agent.role(first), 1)]
    edges = [GraphEdge(_REQUEST, first), GraphEdge(first, _ANSWER)]
    level, column, seen = [first], 2, {first}
    while level:
        below: list[str] = []
        for name in level:
            for worker in agent.workers_of(agent.role(name)):
                edges.append(GraphEdge(name, worker.name, "delegates"))
                if worker.name not in seen:
                    seen.add(worker.name)
                    below.append(worker.name)
                    nodes.append(_node(agent, worker, column))
        level, column = below, column + 1
    return nodes, edges


def _hub(agent: Agent) -> Parts:
    hub = agent.role(agent.hub_role or agent.roles[0].name)
    spokes = agent.spokes_of(hub)
    nodes = [*_ends(3), _node(agent, hub, 1), *(_node(agent, role, 2) for role in spokes)]
    edges = [GraphEdge(_REQUEST, hub.name)]
    for role in spokes:
        edges += [GraphEdge(hub.name, role.name, "delegates"), GraphEdge(role.name, _ANSWER)]
    return nodes, edges


def _custom(agent: Agent) -> Parts:
    code = GraphNode("(code)", 1, agent.custom or "code", ("code of a package",), kind="code")
    nodes = [*_ends(2), code, *(_node(agent, role, 2) for role in agent.roles)]
    edges = [GraphEdge(_REQUEST, code.id), GraphEdge(code.id, _ANSWER)]
    return nodes, [*edges, *(GraphEdge(code.id, role.name, "delegates") for role in agent.roles)]


_FLOWS: Final[dict[str, Callable[[Agent], Parts]]] = {
    "single": _chain,
    "sequential": _chain,
    "loop": _chain,
    "parallel": _parallel,
    "coordinator": _tree,
    "hierarchical": _tree,
    "hub-spoke": _hub,
    "custom": _custom,
}


def role_rows(agent: Agent) -> Sequence[dict[str, Any]]:
    """The roles as a table."""
    return [
        {
            "name": role.name,
            "description": role.description,
            "model": role.model or agent.model or "default model",
            "tools": [*map(str, role.tools), *(f"knowledge: {name}" for name in role.knowledge)],
            "agents": list(role.agents),
            "approve": role.approve if isinstance(role.approve, str) else ", ".join(role.approve),
            "ask": role.ask,
            "max_turns": role.max_turns,
            "prompt": role.prompt,
            "prompt_ref": role.prompt_ref,
        }
        for role in agent.roles
    ]
