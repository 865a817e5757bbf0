"""The flows: in what order roles run, what they read, and whose answer it is."""

import pytest
from toold.protocol.error_codes import ProviderError

from .hosted import Hosted, calls, script

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_sequential_roles_read_the_previous_answer(hosted: Hosted) -> None:
    """The second role's prompt is the first one's answer, and the last answer is the agent's."""
    inner = script("the end")
    answer = await hosted.ask("chain", script(inner))
    assert answer.structured["answer"] == "the end"
    first, second = hosted.sent(2)
    assert (first[0]["content"], second[0]["content"]) == ("First.", "Second.")
    assert second[1]["content"] == inner
    assert answer.structured["turns"] == 2


async def test_parallel_roles_are_aggregated_also_if_one_fails(hosted: Hosted) -> None:
    """The aggregator reads one block per role; a role that failed is named there and in the answer."""
    hosted.simulator.plan("kimi", "chat", "status=400")
    answer = await hosted.ask("panel", "Judge.")
    (messages,) = hosted.sent()
    text = messages[1]["content"]
    assert messages[0]["content"] == "Edit."
    assert text.startswith("Judge.\n\n=== law ===\n")
    assert "=== tech ===\nThis role failed" in text
    assert [failed.split(":")[0] for failed in answer.structured["failed_roles"]] == ["tech"]


async def test_calls_of_all_roles_have_different_ids(hosted: Hosted) -> None:
    """The id of a listed call is that of the child call below the agent's call, with its role's name."""
    answer = await hosted.ask("pair", script(calls(("version", {})), "seen"))
    assert [call["id"] for call in answer.structured["calls"]] == ["left/t1.0", "right/t1.0"]
    assert answer.structured["turns"] == 4


async def test_parallel_roles_that_all_fail_are_an_error(hosted: Hosted) -> None:
    """Without any answer there is nothing to aggregate."""
    with pytest.raises(ProviderError, match=r"^role law: (?!role)"):
        await hosted.ask("panel", script({"status": 400, "always": True}))


async def test_a_loop_ends_by_its_condition(hosted: Hosted) -> None:
    """The roles run again on the last answer until it meets ``stop_when``."""
    second_review = script("good")
    second_draft = script(second_review)
    first_review = script(second_draft)
    answer = await hosted.ask("rounds", script(first_review))
    assert answer.structured["answer"] == "good"
    assert answer.structured["iterations"] == 2
    assert answer.structured["state"] == "done"


async def test_a_loop_ends_by_a_role(hosted: Hosted) -> None:
    """``exit_loop`` makes the role's next answer the last one."""
    answer = await hosted.ask("rounds", script(calls(("exit_loop", {"reason": "enough"})), "that was it"))
    assert answer.structured["answer"] == "that was it"
    assert answer.structured["iterations"] == 1
    assert answer.structured["turns"] == 2


async def test_a_loop_ends_after_its_iterations(hosted: Hosted) -> None:
    """After ``max_iterations`` the last answer is the agent's, which says so."""
    answer = await hosted.ask("rounds", "Write.")
    assert (answer.structured["iterations"], answer.structured["stopped_by"]) == (3, "max_iterations")


async def test_a_coordinator_delegates(hosted: Hosted) -> None:
    """A worker runs with its own prompt and tools; the coordinator reads its answer and answers."""
    task = script(calls(("echo", {"value": 1})), "clerk's answer")
    answer = await hosted.ask("desk", script(calls(("delegate_to_clerk", {"prompt": task})), "lead's answer"))
    assert answer.structured["answer"] == "lead's answer"
    assert answer.structured["turns"] == 4
    assert [(call["role"], call["tool"], call["id"]) for call in answer.structured["calls"]] == [
        ("lead", "delegate_to_clerk", "t1.0"),
        ("clerk", "echo", "t1.0/t1.0"),
    ]
    assert hosted.sent()[0][-1]["content"] == "clerk's answer"


async def test_workers_delegate_further(hosted: Hosted) -> None:
    """In a hierarchy each role delegates to the roles below it and to no others."""
    clerk = script("from the clerk")
    lead = script(calls(("delegate_to_clerk", {"prompt": clerk})), "from the lead")
    answer = await hosted.ask("board", script(calls(("delegate_to_lead", {"prompt": lead})), "from the chair"))
    assert answer.structured["answer"] == "from the chair"
    functions = [
        [tool["function"]["name"] for tool in request.body.get("tools", ())] for request in hosted.simulator.log[-3:]
    ]
    assert functions == [[], ["delegate_to_clerk"], ["delegate_to_lead"]]


async def test_a_hub_hands_over(hosted: Hosted) -> None:
    """The chosen spoke's answer is the answer; the hub makes no further turn."""
    task = script("we repair it")
    answer = await hosted.ask("switch", script(calls(("transfer_to_support", {"prompt": task}))))
    assert answer.structured["answer"] == "we repair it"
    assert answer.structured["answered_by"] == "support"
    assert answer.structured["turns"] == 2


async def test_a_hub_answers_itself(hosted: Hosted) -> None:
    """A hub that does not transfer answers itself."""
    answer = await hosted.ask("switch", script("I know that."))
    assert answer.structured["answer"] == "I know that."
    assert "answered_by" not in answer.structured
