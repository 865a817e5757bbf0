"""Long conversations: what is shortened, what stays, and what happens if that fails."""

import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import ContextLengthExceededError
from toold.tools import Turn, estimate_tokens
from toold.tools.agents import AgentDefinitionError, read_agent
from toold.tools.agents.agent_messages import Row
from toold.tools.agents.role_dialogue import Dialogue, Exchange, begin_dialogue

from .hosted import Hosted, calls, script

WINDOW = 8000
LONG = calls(("fill", {"text": "word ", "times": 1500}))


def turns_until_a_summary(summary: str, *after: Any) -> str:
    """A prompt after which the model calls ``fill`` three times, then summarizes, and answers ``after``.

    The simulator follows the last script that it reads: the one in the first turn's text, which only the transcript
    has, and then the one in the summary. After it, one earlier turn is left.
    """
    following = script("-", *after).removeprefix("Do it. ")
    return script({**LONG, "text": script(f"{summary} {following}").removeprefix("Do it. ")}, LONG, LONG)


def exchange(number: int, size: int) -> Exchange:
    name = f"t{number}"
    call = {"id": name, "name": "fill", "arguments": "{}"}
    asked: Row = {"role": "assistant", "content": "", "tool_calls": [call]}
    return Exchange((asked, {"role": "tool", "content": "word " * size, "tool_call_id": name, "tool_name": "fill"}))


@given(
    st.lists(st.integers(0, 300), max_size=5),
    st.lists(st.integers(0, 300), max_size=5),
    st.integers(1, 6),
    st.integers(0, 900),
    st.booleans(),
)
def test_exchanges_stay_whole(earlier: list[int], done: list[int], keep: int, room: int, twice: bool) -> None:
    """However many exchanges a summary replaces, each call has its result, the request stays, no two messages of the
    user follow each other, and the results that the model has not read are kept."""
    history = [turn for size in earlier for turn in (Turn("user", "u" * size), Turn("assistant", "a"))]
    dialogue = begin_dialogue("System.", history, "Request.")
    for number, size in enumerate(done):
        dialogue = dialogue.with_exchange(exchange(number, size))
    for _ in range(1 + twice):
        before, count = dialogue, dialogue.older(keep, room)
        dialogue = dialogue.summarized(count, "Summary.") if count else dialogue
        assert dialogue.done[-1:] == before.done[-1:]
        assert len(dialogue.earlier) + len(dialogue.done) <= max(keep, len(before.done[-1:]))
    rows = dialogue.rows
    assert any("Request." in row["content"] for row in rows)
    roles = [row["role"] for row in rows]
    assert roles[:2] == ["system", "user"]
    assert ("user", "user") not in list(itertools.pairwise(roles))
    asked = [call["id"] for row in rows for call in row.get("tool_calls", ())]
    assert asked == [row["tool_call_id"] for row in rows if row["role"] == "tool"]


@given(st.text(max_size=200), st.integers(0, 50))
def test_tokens_are_counted_only_if_there_may_be_too_many(text: str, size: int) -> None:
    """There are never more tokens than characters, which are known at once."""
    dialogue = Dialogue(text, text, summary=text).with_exchange(exchange(1, size))
    assert dialogue.tokens <= dialogue.chars


@pytest.mark.parametrize(
    ("compaction", "message"),
    [({"threshold": 1.5}, "threshold"), ({"keep": 3}, "keep is not a field"), ("yes", "compaction")],
)
def test_invalid_settings_are_refused(compaction: Any, message: str) -> None:
    """The error names the field."""
    with pytest.raises(AgentDefinitionError, match=message):
        read_agent("x", {"description": "d", "prompt": "p", "compaction": compaction})


@pytest.mark.asyncio(loop_scope="module")
async def test_the_oldest_turns_are_summarized(hosted: Hosted) -> None:
    """Beyond the share of the window, one child call summarizes the oldest turns, and the model reads the request, the
    summary, and the latest turn."""
    answer = await hosted.ask("narrow", turns_until_a_summary("They were words.", "all done"))
    assert (answer.structured["answer"], answer.structured["summaries"]) == ("all done", 1)
    assert answer.structured["turns"] == 4
    summary, messages = hosted.sent(2)
    assert "Result of fill: word word" in summary[1]["content"]
    assert [row["role"] for row in messages] == ["system", "user", "assistant", "tool"]
    assert messages[1]["content"].startswith("Do it.")
    assert "They were words." in messages[1]["content"]
    (run,) = (await hosted.client.call("agent_runs", {"agent": "narrow", "limit": 1})).structured["runs"]
    shown = (await hosted.client.call("agent_runs", {"run_id": run["run_id"]})).structured
    (made,) = [step for step in shown["steps"] if step.get("summary")]
    assert (made["id"], made["role"], made["text"][:16]) == ("summary.1", "main", "They were words.")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_resumed_run_makes_no_second_summary(hosted: Hosted) -> None:
    """After a pause the run reads its summary from the journal, and sends what it would have sent."""
    before = len(hosted.simulator.requests)
    prompt = turns_until_a_summary("Words.", calls(("echo", {"text": "written"})), "done after the pause")
    paused = await hosted.ask("narrow_careful", prompt)
    call_id, (request,) = paused.structured["call_id"], paused.structured["requests"]
    decision = {"id": request["id"], "decision": "approve"}
    await hosted.client.call("agent_decide", {"call_id": call_id, "decisions": [decision]})
    result = await hosted.result(call_id)
    assert (result["answer"], result["summaries"]) == ("done after the pause", 1)
    assert len(hosted.simulator.requests) - before == 6


@pytest.mark.asyncio(loop_scope="module")
async def test_a_run_goes_on_without_summary_while_it_fits(hosted: Hosted) -> None:
    """A summary that fails is a warning, as long as the messages fit into the window."""
    fails = script({"text": "x", "status": 400, "always": True}).removeprefix("Do it. ")
    answer = await hosted.ask("narrow", script({**LONG, "text": fails}, LONG, LONG, "done without"))
    assert answer.structured["answer"] == "done without"
    (warning,) = answer.structured["warnings"]
    assert warning.startswith("role main: the messages were not summarized: ")
    assert "summaries" not in answer.structured


@pytest.mark.asyncio(loop_scope="module")
async def test_a_run_that_cannot_be_shortened_ends(hosted: Hosted) -> None:
    """Turns of the run are never left out: it ends with an error that says why, and the next message works."""
    first = await hosted.ask("narrow_writer", "Hello.")
    conversation = first.structured["continuation_id"]
    huge = script("word " * 9000).removeprefix("Do it. ")  # longer than what it replaces
    turn = {**LONG, "text": huge}
    with pytest.raises(ContextLengthExceededError, match=r"Role main: .*the window of small/window has 8,000"):
        await hosted.ask("narrow_writer", script(turn, LONG, LONG), continuation_id=conversation)
    answer = await hosted.ask("narrow_writer", "And now?", continuation_id=conversation)
    assert answer.structured["state"] == "done"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_conversation_keeps_its_summary(hosted: Hosted) -> None:
    """Earlier messages are summarized once: the next message begins with the summary and the messages after it."""
    conversation = None
    summaries = []
    for number in range(6):
        answer = await hosted.ask("narrow", f"Message {number}: {'word ' * 1000}", continuation_id=conversation)
        conversation = answer.structured["continuation_id"]
        summaries.append(answer.structured.get("summaries", 0))
    assert summaries == [0, 0, 0, 1, 0, 0]
    (messages,) = hosted.sent()
    assert messages[1]["content"].startswith("[Summary of the earlier conversation")
    assert "Message 5" in messages[-1]["content"]
    assert estimate_tokens([row["content"] for row in messages]) < WINDOW


@pytest.mark.asyncio(loop_scope="module")
async def test_a_refusal_shortens_what_has_an_unknown_window(hosted: Hosted) -> None:
    """If the vendor says that the messages are too long, the oldest are summarized and the turn is made again."""
    following = script("-", "it fits").removeprefix("Do it. ")
    first = {**calls(("fill", {"text": "word ", "times": 200})), "text": script(f"S. {following}")[7:]}
    answer = await hosted.ask("unstated", script(first, first, {"text": "never", "too_long": True, "always": True}))
    assert (answer.structured["answer"], answer.structured["summaries"]) == ("it fits", 1)


@pytest.mark.asyncio(loop_scope="module")
async def test_without_compaction_the_vendor_decides(hosted: Hosted) -> None:
    """``compaction = false`` sends all messages, and the vendor's refusal ends the run."""
    with pytest.raises(ContextLengthExceededError):
        await hosted.ask("lengthy", script(LONG, LONG, LONG, LONG, {"text": "x", "too_long": True, "always": True}))
    assert len(hosted.sent()[0]) == 10


@pytest.mark.asyncio(loop_scope="module")
async def test_no_request_exceeds_the_window(hosted: Hosted) -> None:
    """Whatever the sizes of results, each request fits into the window, and no call is without its result."""
    sizes = random.Random(1)  # noqa: S311 - no secret
    turns = [
        calls(*[("fill", {"text": "word ", "times": sizes.randrange(3000)}) for _ in range(sizes.randrange(1, 5))])
        for _ in range(6)
    ]
    before = len(hosted.simulator.requests)
    answer = await hosted.ask("narrow", script(*turns, "done"))
    assert answer.structured["summaries"] > 0
    for messages in hosted.sent(min(50, len(hosted.simulator.requests) - before)):
        assert estimate_tokens([row["content"] for row in messages]) < WINDOW
