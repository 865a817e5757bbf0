"""Definitions of agents: what is accepted, and the errors by field."""

from pathlib import Path
from typing import Any

import pytest
from toold.tools.agents import AgentDefinitionError, agents_in, read_agent, read_agents

ROLES: list[dict[str, Any]] = [{"name": "a", "prompt": "A"}, {"name": "b", "prompt": "B"}]


def test_a_table_without_roles_is_one_role() -> None:
    """Fields of a role in the agent's table make an agent of one role."""
    agent = read_agent("helper", {"description": "Helps.", "prompt": "You help.", "tools": ["echo"], "max_turns": 3})
    assert [role.name for role in agent.roles] == ["main"]
    assert (agent.roles[0].prompt, agent.roles[0].max_turns, str(agent.roles[0].tools[0])) == ("You help.", 3, "echo")


def test_former_field_names_are_accepted() -> None:
    """``prompt_inline``, ``instruction`` and tools as objects with ``id`` and ``active`` mean what they meant."""
    tools = ["echo", {"tool_id": "status", "active": False, "provider": "builtin"}, {"mcp": "tracker"}]
    roles = [{"name": "a", "prompt_inline": "A", "tools": tools}, {"name": "b", "instruction": "B"}]
    agent = read_agent("pair", {"description": "d", "execution_type": "sequential", "roles": roles})
    assert [role.prompt for role in agent.roles] == ["A", "B"]
    grants = agent.roles[0].tools
    assert [(grant.name, grant.source, grant.active) for grant in grants] == [
        ("echo", None, True),
        ("status", None, False),
        (None, "tracker", True),
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "x: description is required"),
        ({"description": "d", "prompt": "p", "prmpt": "q"}, "prmpt is not a field; did you mean 'prompt'?"),
        (
            {"description": "d", "roles": [{"name": "a", "modle": "m"}]},
            "modle is not a field; did you mean 'model'?",
        ),
        (
            {"description": "d", "execution_type": "fanout", "prompt": "p"},
            "execution_type must be one of single, sequential",
        ),
        ({"description": "d", "execution_type": "coordinator", "roles": ROLES}, "coordinator_role: is required"),
        (
            {"description": "d", "execution_type": "coordinator", "coordinator_role": "c", "roles": ROLES},
            "coordinator_role: names 'c', but the roles are a, b",
        ),
        ({"description": "d", "roles": ROLES}, "'single' has one role"),
        ({"description": "d", "prompt": "p", "skills": [{"id": "s"}]}, "skills.0.description is required"),
        (
            {"description": "d", "prompt": "p", "skills": [{"id": "s", "description": "d", "tag": "t"}]},
            "skills.0.tag is not a field; did you mean 'tags'?",
        ),
        (
            {"description": "d", "prompt": "p", "skills": [{"id": "s", "description": "d"}] * 2},
            "skills has two skills with the id 's'",
        ),
        (
            {"description": "d", "prompt": "p", "skills": [{"id": str(n), "description": "d"} for n in range(65)]},
            "skills must have 64 entries or fewer",
        ),
        (
            {"description": "d", "execution_type": "sequential", "roles": [ROLES[0], ROLES[0]]},
            "roles: has two roles named 'a'",
        ),
        (
            {"description": "d", "execution_type": "sequential", "hub_role": "a", "roles": ROLES},
            "hub_role: belongs to execution_type hub-spoke",
        ),
        (
            {"description": "d", "execution_type": "parallel", "aggregator_role": "a", "roles": [ROLES[0]]},
            "aggregator_role: 'a' has no other roles",
        ),
        ({"description": "d", "roles": [{"name": "t1", "prompt": "p"}]}, "roles.0.name must not be snapshot"),
        ({"description": "d", "prompt": "p", "prompt_tag": "staging"}, "prompt_tag: needs prompt_ref"),
        ({"description": "d", "prompt": "p", "run_budget": "cheap"}, "run_budget must be amounts such as 5 USD"),
        ({"description": "d", "prompt": "p", "tools": [{"include": ["x"]}]}, "needs either name"),
        (
            {"description": "d", "execution_type": "loop", "stop_when": "answer ==", "roles": ROLES},
            "stop_when is not a condition",
        ),
        (
            {"description": "d", "execution_type": "hierarchical", "coordinator_role": "a", "roles": ROLES},
            "b: no role delegates to them",
        ),
    ],
)
def test_an_invalid_definition_names_the_field(table: dict[str, Any], message: str) -> None:
    """The error says which field is wrong and what it accepts; nothing is run as something else."""
    with pytest.raises(AgentDefinitionError) as raised:
        read_agent("x", table)
    assert message in str(raised.value)


def test_agents_that_call_each_other_are_refused() -> None:
    """A cycle of agents is an error that shows the cycle."""
    tables = {name: {"description": "d", "prompt": "p", "agents": [called]} for name, called in ("ab", "bc", "ca")}
    with pytest.raises(AgentDefinitionError, match="a → b → c → a"):
        read_agents(tables)


def test_files_define_agents(tmp_path: Path) -> None:
    """Each TOML, YAML or JSON file of a directory is one agent; an invalid one is named by file and field."""
    (tmp_path / "one.toml").write_text('description = "One."\nprompt = "p"\n')
    (tmp_path / "two.yaml").write_text("description: Two.\nprompt: p\n")
    (tmp_path / "three.json").write_text('{"description": "Three.", "prompt": "p"}')
    (tmp_path / "notes.txt").write_text("no agent")
    assert {name: agent.description for name, agent in agents_in(tmp_path).items()} == {
        "one": "One.",
        "two": "Two.",
        "three": "Three.",
    }
    (tmp_path / "four.yaml").write_text("description: Four.\nmax_turns: many\n")
    with pytest.raises(AgentDefinitionError, match=r"four\.yaml: four: max_turns must be a whole number"):
        agents_in(tmp_path)
