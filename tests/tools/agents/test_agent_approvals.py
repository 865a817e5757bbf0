"""A person in the loop: calls that need approval, and questions, pause a run until they are decided."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError

from .hosted import Hosted, calls, script

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def decide(hosted: Hosted, call_id: str, **decisions: dict[str, Any]) -> None:
    rows = [{"id": name.replace("__", "/").replace("_", "."), **row} for name, row in decisions.items()]
    await hosted.client.call("agent_decide", {"call_id": call_id, "decisions": rows})


async def paused(hosted: Hosted, agent: str, prompt: str) -> tuple[str, list[dict[str, Any]]]:
    """The call that continues a run that has paused, and what it waits for."""
    answer = (await hosted.ask(agent, prompt)).structured
    assert answer["paused"] is True
    return answer["call_id"], answer["requests"]


async def test_an_approved_call_runs_once_with_its_arguments(hosted: Hosted) -> None:
    """The run pauses before the call and shows its arguments; after the approval it runs, and the model continues."""
    prompt = script(calls(("version", {}), ("echo", {"value": "as wanted"})), "written")
    call_id, requests = await paused(hosted, "careful", prompt)
    assert [(each["id"], each["kind"], each["tool"], each["arguments"]) for each in requests] == [
        ("t1.1", "approve", "echo", {"value": "as wanted"})
    ]
    asked = len(hosted.simulator.log)
    await decide(hosted, call_id, t1_1={"decision": "approve"})
    result = await hosted.result(call_id)
    assert (result["answer"], result["turns"]) == ("written", 2)
    assert len(hosted.simulator.log) == asked + 1  # the first turn was not asked again
    assert "as wanted" in hosted.sent()[0][-1]["content"]


async def test_edited_arguments_are_used(hosted: Hosted) -> None:
    """The call runs with the arguments of the person, not with the model's."""
    call_id, _ = await paused(hosted, "careful", script(calls(("echo", {"value": "mine"})), "done"))
    await decide(hosted, call_id, t1_0={"decision": "approve", "arguments": {"value": "yours"}})
    await hosted.result(call_id)
    content = hosted.sent()[0][-1]["content"]
    assert "yours" in content
    assert "mine" not in content


async def test_a_rejected_call_is_a_message_to_the_model(hosted: Hosted) -> None:
    """The call does not run; the model reads the reason and answers."""
    call_id, _ = await paused(hosted, "careful", script(calls(("echo", {"value": 1})), "then not"))
    await decide(hosted, call_id, t1_0={"decision": "reject", "text": "too dear"})
    result = await hosted.result(call_id)
    assert result["answer"] == "then not"
    assert result["calls"][0]["outcome"] == "NOT_APPROVED"
    assert "too dear" in hosted.sent()[0][-1]["content"]


async def test_a_question_is_answered(hosted: Hosted) -> None:
    """``ask_user`` pauses the run, and its result is what the person answered."""
    call_id, requests = await paused(hosted, "careful", script(calls(("ask_user", {"question": "Which?"})), "that one"))
    assert (requests[0]["kind"], requests[0]["text"]) == ("question", "Which?")
    await decide(hosted, call_id, t1_0={"decision": "answer", "text": "The blue one."})
    assert (await hosted.result(call_id))["answer"] == "that one"
    assert hosted.sent()[0][-1]["content"] == "The blue one."


async def test_a_prompt_that_changes_during_a_pause_changes_no_run(hosted: Hosted) -> None:
    """A run continues with the prompt of its snapshot; the next run gets the new one."""
    (hosted.directory / "prompts").mkdir(exist_ok=True)
    file = hosted.directory / "prompts/asking.md"
    file.write_text("The earlier prompt.\n")
    call_id, _ = await paused(hosted, "careful_reader", script(calls(("ask_user", {"question": "Which?"})), "that one"))
    file.write_text("The later prompt.\n")
    await decide(hosted, call_id, t1_0={"decision": "answer", "text": "Any."})
    await hosted.result(call_id)
    assert hosted.sent()[0][0]["content"].startswith("The earlier prompt.")
    await hosted.ask("careful_reader", script("done"))
    assert hosted.sent()[0][0]["content"].startswith("The later prompt.")


async def test_all_requests_of_a_turn_come_together(hosted: Hosted) -> None:
    """Two calls that need approval are one pause; the run resumes after both decisions, in any order."""
    prompt = script(calls(("echo", {"value": 1}), ("echo", {"value": 2})), "both decided")
    call_id, requests = await paused(hosted, "careful", prompt)
    assert [each["id"] for each in requests] == ["t1.0", "t1.1"]
    await decide(hosted, call_id, t1_1={"decision": "approve"})
    state = (await hosted.client.call("call_status", {"call_id": call_id})).structured
    assert [each["id"] for each in state["requests"]] == ["t1.0"]
    await decide(hosted, call_id, t1_0={"decision": "reject"})
    assert (await hosted.result(call_id))["answer"] == "both decided"


async def test_a_worker_pauses_the_whole_run(hosted: Hosted) -> None:
    """A role below another pauses both; the request's id says where it is from."""
    task = script(calls(("echo", {"value": "deep"})), "worker done")
    call_id, requests = await paused(
        hosted, "careful_desk", script(calls(("delegate_to_clerk", {"prompt": task})), "ok")
    )
    assert [each["id"] for each in requests] == ["t1.0/t1.0"]
    await decide(hosted, call_id, t1_0__t1_0={"decision": "approve"})
    result = await hosted.result(call_id)
    assert (result["answer"], result["turns"]) == ("ok", 4)


async def test_parallel_roles_pause_together(hosted: Hosted) -> None:
    """A branch that needs no person ends; the requests of all other branches come in one pause."""
    call_id, requests = await paused(hosted, "careful_panel", script(calls(("echo", {"value": 1})), "branch done"))
    assert [each["id"] for each in requests] == ["left/t1.0", "right/t1.0"]
    await decide(hosted, call_id, left__t1_0={"decision": "approve"}, right__t1_0={"decision": "approve"})
    assert (await hosted.result(call_id))["answer"].count("branch done") == 3


async def test_a_wrong_decision_changes_nothing(hosted: Hosted) -> None:
    """An unknown request is refused with the open ones; the run stays paused and can still be decided."""
    call_id, _ = await paused(hosted, "careful", script(calls(("echo", {"value": 1})), "done"))
    with pytest.raises(InvalidArgumentsError, match=r"t1\.0"):
        await decide(hosted, call_id, t9_9={"decision": "approve"})
    await decide(hosted, call_id, t1_0={"decision": "approve"})
    assert (await hosted.result(call_id))["answer"] == "done"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute_tool", {"tool_name": "echo", "args": {"value": 1}}),
        ("execute_pipeline", {"steps": [{"id": "a", "tool_name": "echo", "args": {"value": 1}}]}),
    ],
)
async def test_approval_cannot_be_bypassed_by_another_tool(
    hosted: Hosted, tool: str, arguments: dict[str, Any]
) -> None:
    """A tool that calls tools cannot call those that need a person's approval."""
    answer = await hosted.ask("careful_composer", script(calls((tool, arguments)), "tried"))
    assert answer.structured["answer"] == "tried"
    content = hosted.sent()[0][-1]["content"]
    assert "'echo' is not one of them" in content
    assert answer.structured["calls"][0]["outcome"] != "ok"


async def test_an_agent_cannot_decide(hosted: Hosted) -> None:
    """A person decides: a model that calls ``agent_decide`` is refused, and the run stays paused."""
    call_id, _ = await paused(hosted, "careful", script(calls(("echo", {"value": 1})), "done"))
    decision = {"call_id": call_id, "decisions": [{"id": "t1.0", "decision": "approve"}]}
    await hosted.ask("careful_composer", script(calls(("agent_decide", decision)), "tried"))
    assert "PERMISSION_DENIED" in hosted.sent()[0][-1]["content"]
    state = (await hosted.client.call("call_status", {"call_id": call_id})).structured
    assert state["state"] == "paused"


async def test_a_misspelt_approval_is_refused(hosted: Hosted) -> None:
    """An agent does not run if a pattern of ``approve`` matches none of its tools, because it would protect nothing."""
    with pytest.raises(ServiceUnavailableError, match=r"roles\.main\.approve: 'ehco' .* did you mean 'echo'"):
        await hosted.ask("careless", "hello")
