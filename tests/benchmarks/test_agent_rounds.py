"""The comparison of agents: the model's turns, the times of turns, and the verdict."""

import json
import tomllib
from typing import Any

import pytest
from benchmarks.agents.flow import ANSWER, INSTRUCTIONS, RUNS, TOOLS, TURNS, question
from benchmarks.agents.measure import ADK, PYDANTIC_AI, TOOLD, FailedRunsError, Round, configuration, turn_times
from benchmarks.agents.report import is_met, markdown
from benchmarks.agents.stand_in_vendor import VendorTurn, WrongRequestError, answer
from toold.tools.agents import read_agents

RUN = "7"
TURNS_OF_7 = [VendorTurn(RUN, number * 2.0, number * 2.0 + 1.0) for number in range(1, TURNS + 1)]


def request(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """A request with these messages after the instructions and the question."""
    first = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question(RUN)}]
    tools = [{"type": "function", "function": {"name": function.__name__}} for function in TOOLS]
    return {"messages": first + messages, "tools": tools}


def test_the_model_follows_the_flow() -> None:
    """It calls tools for three turns and then answers; a request without the results of its calls is refused."""
    messages: list[dict[str, Any]] = []
    for number in range(TURNS - 1):
        said = json.loads(answer(request(messages))[1])["choices"][0]["message"]
        messages.append(said)
        with pytest.raises(WrongRequestError, match=f"turn {number + 1}"):
            answer(request(messages))
        results = [{"role": "tool", "tool_call_id": call["id"], "content": f"of {RUN}"} for call in said["tool_calls"]]
        messages += results
    run, last = answer(request(messages))
    assert (run, json.loads(last)["choices"][0]["message"]["content"]) == (RUN, ANSWER.format(order=RUN))


def test_the_time_of_a_turn_excludes_the_model() -> None:
    """A turn counts from the begin or the model's last answer to its request; the last one also counts the end."""
    runs = [(RUN, 1.5, 9.25, ANSWER.format(order=RUN))]
    assert turn_times(runs, TURNS_OF_7[::-1]) == [0.5, 1.0, 1.0, 1.25]


@pytest.mark.parametrize(("said", "turns"), [("Error: no", TURNS_OF_7), (ANSWER.format(order=RUN), TURNS_OF_7[1:])])
def test_a_failed_run_ends_the_measurement(said: str, turns: list[VendorTurn]) -> None:
    """With a wrong answer or a missing turn, a round is not comparable."""
    with pytest.raises(FailedRunsError, match="run 7"):
        turn_times([(RUN, 1.5, 9.25, said)], turns)


def test_the_target_is_less_cpu_time_than_both() -> None:
    """It is missed as soon as one of the others takes no more."""

    def rounds(cpu_ms: float) -> list[Round]:
        return [Round(cpu_ms, 1.0, 2.0, 4.0, 100.0)]

    faster = {TOOLD: rounds(5.0), ADK: rounds(10.0), PYDANTIC_AI: rounds(5.5)}
    loaded = dict.fromkeys(faster, 90.0)
    assert is_met(faster)
    assert "2.00 (2.00 to 2.00) | 1.10 (1.10 to 1.10)" in markdown(faster, loaded)
    assert "both: missed" in markdown({**faster, PYDANTIC_AI: rounds(5.0)}, loaded)


def test_the_agents_of_the_comparison_are_valid() -> None:
    """toold reads all of them, and the vendor takes all runs at once."""
    config = tomllib.loads(configuration(1))
    assert len(read_agents(config["agents"])) == 200
    assert config["providers"]["shop"]["max_in_flight"] == RUNS
