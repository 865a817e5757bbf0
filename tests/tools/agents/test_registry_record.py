"""Agents as the predecessor's registry answers them."""

from typing import Any

import pytest
from toold.tools.agents import AgentDefinitionError, read_agent

ROLE: dict[str, Any] = {
    "prompt_ref": None,
    "prompt_inline": "Do it.",
    "tools": ["Bash", "Read", "Grep", "Glob"],
    "max_turns": 10,
    "model": None,
    "metadata": {},
}


def record(execution_type: str, names: list[str], **config: Any) -> dict[str, Any]:
    """What ``GET /agents/{id}`` answers, with the fields that a registry always has."""
    roles = [{"name": name, **ROLE} for name in names]
    runtime = {
        "execution_type": execution_type,
        "permission_mode": "bypassPermissions",
        "chain_output": True,
        "roles": roles,
        "parallel_roles": [],
        "aggregator_role": None,
        "coordinator_role": None,
        "worker_roles": [],
        "hub_role": None,
        "spoke_roles": [],
    }
    card = {"agent_id": "b3b0cfce", "name": "Pipe Line", "url": "", "version": "1.0.0", "skills": [], "tools": []}
    return {**card, "runtime_config": runtime | config}


@pytest.mark.parametrize(
    ("execution_type", "config"),
    [
        ("sequential", {}),
        ("parallel", {"aggregator_role": "b"}),
        ("loop", {"max_iterations": 2}),
        ("coordinator", {"coordinator_role": "a"}),
        ("hub-spoke", {"hub_role": "a", "spoke_roles": ["b"]}),
    ],
)
def test_each_flow_of_a_registry_is_read(execution_type: str, config: dict[str, Any]) -> None:
    """The flow, its roles and their references are today's; the default tools that no agent had are left out."""
    agent = read_agent("pipe", record(execution_type, ["a", "b"], **config))
    assert (agent.description, agent.execution_type) == ("Pipe Line", execution_type)
    assert [(role.name, role.prompt, role.tools) for role in agent.roles] == [("a", "Do it.", ()), ("b", "Do it.", ())]
    assert {field: getattr(agent, field) for field in config} == {
        field: tuple(value) if isinstance(value, list) else value for field, value in config.items()
    }


def test_names_of_roles_become_identifiers() -> None:
    """A name with spaces is part of call ids, so it is changed, and references to it as well."""
    agent = read_agent("pipe", record("coordinator", ["Legal Expert", "2nd view"], coordinator_role="Legal Expert"))
    assert [role.name for role in agent.roles] == ["Legal_Expert", "role_2nd_view"]
    assert agent.coordinator_role == "Legal_Expert"


def test_an_unknown_flow_of_a_registry_is_refused() -> None:
    """It is not run as something else."""
    with pytest.raises(AgentDefinitionError, match="execution_type must be"):
        read_agent("pipe", record("hybrid_hierarchical", ["a"]))


def test_cards_and_collections_of_a_registry_never_prevent_a_run() -> None:
    """Skills are cut to what a card may have, each once; values that are not skills or names are left out."""
    skills = [{"id": f"s{number}", "description": "d" * 5000, "tags": ["", 1]} for number in range(70)]
    more = {"skills": [skills[0], None, {"id": ""}, *skills], "is_public": "yes", "rag_ids": ["a", "", 5, "b"]}
    rags = {"rag_configs": [{"id": "b"}, {"id": "x", "knowledge_base_id": "c"}, {}, None]}
    agent = read_agent("pipe", record("single", ["a"]) | more | rags)
    assert [skill.id for skill in agent.skills] == [f"s{number}" for number in range(64)]
    assert (len(agent.skills[0].description), agent.skills[0].tags, agent.public) == (4000, ("agent",), False)
    assert agent.roles[0].optional_knowledge == ("b", "c", "a")
    assert read_agent("pipe", record("single", ["a"]) | {"skills": "x", "rag_ids": {}}).roles[0].knowledge == ()
