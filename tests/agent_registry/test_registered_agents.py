"""Which definitions of a registry are hosted: pure decisions."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toold.agent_registry import AgentReference, RegisteredAgent, after_fetch, plan_agents, read_registry, state_of
from toold.agent_registry.registered_agents import definition_of
from toold.agent_registry.registry_client import (
    AbsentAgent,
    FailedFetch,
    FetchedAgent,
    FetchOutcome,
    RegistryClient,
    UnchangedAgent,
)
from toold.agent_registry.registry_settings import RegistrySettings, RegistrySettingsError
from toold.agent_registry.registry_watch import MAX_RETRY_S, fetch_all, poll_delay_s
from toold.agent_registry.url_registration import MAX_URL_ATTEMPTS, UrlRegistration
from toold.tools import AgentDefinitionError, read_agent

from .registry_stand_in import PIPE, record, role


def registry(**table: Any) -> RegistrySettings:
    found = read_registry({"url": "https://registry.example", "agents": [PIPE], **table})
    assert found is not None
    return found


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def known_after(*outcomes: FetchOutcome, agent_id: str = PIPE, **table: Any) -> RegisteredAgent:
    """What is known after these outcomes, with the agent alone on a daemon."""
    known = RegisteredAgent(AgentReference(agent_id, None))
    for outcome in outcomes:
        known = after_fetch(known, outcome, registry(**table), 1.0)
        _, (known,) = plan_agents([known], {}, ())
    return known


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (FailedFetch("registry.example cannot be reached"), "cannot be reached; its last good definition"),
        (FetchedAgent(record(execution_type="hybrid"), None), "execution_type must be"),
        (FetchedAgent({**record(), "agent_id": "another"}, None), "agent_id belongs to another agent"),
        (FetchedAgent(record(x=nested(5_000)), None), "nested too deeply"),
        (AbsentAgent(), "it is asked once more"),
    ],
)
def test_the_last_good_definition_is_kept(outcome: FetchOutcome, words: str) -> None:
    """A registry that fails, has a wrong definition, or has lost the agent for a moment changes nothing, and the
    problem says so until the registry answers the good definition."""
    known = known_after(FetchedAgent(record(), "e"), outcome)
    assert known.hosted
    assert state_of(known).state == "kept"
    assert words in (known.problem or "")
    assert known_after(FetchedAgent(record(), "e"), outcome, FetchedAgent(record(), "e")).problem is None


def test_a_wrong_definition_stays_a_problem_while_it_is_unchanged() -> None:
    """An answer "not modified" is about the wrong definition."""
    wrong = FetchedAgent(record(execution_type="hybrid"), "wrong")
    known = known_after(FetchedAgent(record(), "e"), wrong, UnchangedAgent())
    assert (known.etag, known.hosted) == ("wrong", True)
    assert "execution_type must be" in (known.problem or "")


def test_a_deleted_agent_is_no_longer_hosted() -> None:
    """The registry has to say twice that it has none."""
    known = known_after(FetchedAgent(record(), "e"), AbsentAgent(), AbsentAgent())
    assert (known.hosted, known.good, state_of(known).state) == (False, None, "missing")


def test_models_and_prompts_are_completed() -> None:
    """Models are the configured provider's, and roles without a prompt get the one of the settings."""
    roles = (role("a", "Own.", model="eo-x"), role("b", model="litellm/eo-y"), role("c", prompt_ref="its-own"))
    definition = definition_of(
        record(PIPE, "P", *roles),
        AgentReference(PIPE, "pipe"),
        registry(provider="litellm", prompt_ref="shared"),
    )
    assert [(each.model, each.prompt, each.prompt_ref) for each in definition.agent.roles] == [
        ("litellm/eo-x", "Own.", None),
        ("litellm/eo-y", None, "shared"),
        (None, None, "its-own"),
    ]
    assert definition.agent.name == "pipe"


def test_an_agent_that_does_not_fit_the_others_is_refused() -> None:
    """Agents of the settings and other tools keep their names, and a cycle is a wrong definition."""
    configured = {"boss": read_agent("boss", {"description": "d", "prompt": "p", "agents": ["Pipe_Line"]})}
    good = known_after(FetchedAgent(record(), None))
    calling = FetchedAgent(record(PIPE, "Pipe Line", role("a", "p", agents=["boss"])), None)
    changed = after_fetch(good, calling, registry(), 2.0)
    hosted, (planned,) = plan_agents([changed], configured, ())
    assert not hosted["Pipe_Line"].roles[0].agents
    assert "cycle: boss → Pipe_Line → boss; its last good definition is hosted" in (planned.problem or "")
    # Once the other agent no longer calls it, the definition that waited is hosted.
    hosted, (planned,) = plan_agents([planned], {}, ())
    assert (hosted["Pipe_Line"].roles[0].agents, planned.problem) == (("boss",), None)
    for agents, taken in (({"Pipe_Line": configured["boss"]}, ()), ({}, {"Pipe_Line"})):
        hosted, (planned,) = plan_agents([good], agents, taken)
        assert "is named 'Pipe_Line'; name it in agents; it is not hosted" in (planned.problem or "")
        assert hosted == agents


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner | st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)


_JSON = _nested(_nested(st.none() | st.booleans() | st.integers(-5, 99) | st.text(max_size=5)))
_FIELDS = st.sampled_from([*record()["runtime_config"], "max_iterations", "name", "description"])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.dictionaries(_FIELDS, _JSON, max_size=4), st.dictionaries(st.sampled_from(sorted(role("r"))), _JSON))
def test_any_record_is_valid_or_has_an_error_that_says_why(config: dict[str, Any], odd: dict[str, Any]) -> None:
    """No value of a registry raises anything else."""
    top: dict[str, Any] = {field: config.pop(field) for field in ("name", "description") if field in config}
    with suppress(AgentDefinitionError):
        definition_of(
            {**record(PIPE, "P", {**role("a", "p"), **odd}, **config), **top}, AgentReference(PIPE, None), registry()
        )


def test_delays_grow_and_are_bounded() -> None:
    """A registry that fails is asked soon, then more and more rarely, and never all daemons at once."""
    delays = [poll_delay_s(failures, 30.0, 0.5) for failures in (0, 1, 2, 5, 50)]
    assert delays == pytest.approx([30.0, 1.0, 2.0, 16.0, MAX_RETRY_S])
    varied = [poll_delay_s(50, 600.0, 0.5), poll_delay_s(0, 30.0, 0.0), poll_delay_s(0, 30.0, 1.0)]
    assert varied == pytest.approx([600.0, 24.0, 36.0])


async def test_a_registry_that_hangs_is_asked_for_eight_agents_only() -> None:
    """The others share the failure, so that a poll takes one time limit, and the next poll begins with others."""

    class DownClient(RegistryClient):
        async def fetch(self, agent_id: str, etag: str | None) -> FetchOutcome:
            assert etag is None
            asked.append(agent_id)
            return FailedFetch("down")

    asked: list[str] = []
    known = [RegisteredAgent(AgentReference(str(number), None)) for number in range(100)]
    outcomes = await fetch_all(known, DownClient(registry()))
    assert (len(asked), set(outcomes)) == (8, {agent.reference.id for agent in known})
    assert set(outcomes.values()) == {FailedFetch("down")}


def test_a_url_is_sent_until_it_is_taken_or_given_up() -> None:
    """It is sent again if the registry has lost it, and not if another daemon has set its own."""
    told, agent = UrlRegistration(), known_after(FetchedAgent(record(), None))
    down = known_after(FetchedAgent(record(), None), FailedFetch("down"))
    assert not told.wanted(down, "https://own")
    for _ in range(MAX_URL_ATTEMPTS - 1):
        assert told.wanted(agent, "https://own")
        assert not told.ended(agent, "HTTP 500")
    assert told.ended(agent, "HTTP 500")
    assert (told.wanted(agent, "https://own"), len(told.problems)) == (False, 1)
    told.attempts.clear()
    assert told.wanted(agent, "https://own")
    assert told.ended(agent, None)
    other = known_after(FetchedAgent({**record(), "url": "https://other"}, None))
    assert [told.wanted(each, "https://own") for each in (agent, other)] == [True, False]
    assert not told.problems


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"url": "http://registry.example"}, "url uses http to another host"),
        ({"url": "ftp://registry.example"}, "url must be a URL that starts with"),
        ({"agents": []}, "agents must be 1 to 200 agents"),
        ({"agents": [str(number) for number in range(201)]}, "agents must be 1 to 200 agents"),
        ({"agents": ["a", "a"]}, "agents must name each agent once"),
        ({"agents": [".."]}, "agents must have ids"),
        ({"agents": {"two words": "a"}}, "agents must have names"),
        ({"agents": 5}, "agents must be ids"),
        ({"key": "secret-value"}, "key must be { env = … }"),
        ({"key": {"value": "secret-value"}}, "key has env or file"),
        ({"poll_s": 0.5}, "poll_s must be"),
        ({"timeouts": 5}, "timeouts is not a setting; did you mean 'timeout_s'"),
        ({"prompt": "p", "prompt_ref": "r"}, "has prompt and prompt_ref"),
    ],
)
def test_invalid_settings_are_refused_by_name(table: dict[str, Any], words: str) -> None:
    """The message names the key, and no secret."""
    with pytest.raises(RegistrySettingsError) as caught:
        registry(**table)
    assert words in str(caught.value)
    assert "secret-value" not in str(caught.value)
