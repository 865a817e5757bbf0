"""The workflow tools, called over a socket, with files of this repository and the simulated vendors."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import (
    CallCancelledError,
    CallTimeoutError,
    ContextLengthExceededError,
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ProviderError,
    ServiceUnavailableError,
)
from toold.providers import Completion, WebSearch
from toold.tools import bind, load_registry
from toold.tools.builtin.workflow import own_workflows

if TYPE_CHECKING:
    from tests.tools.builtin.workflow.conftest import Harness, OpenHarness
    from tests.tools.tool_context import Context

TOOLS = [tool.name for tool in own_workflows()]
FILE = "src/tools/builtin/echo.py"
TEXT = (Path(__file__).parents[4] / FILE).read_text(encoding="utf-8")
LINE = next(number for number, line in enumerate(TEXT.splitlines(), 1) if line.startswith("@tool("))
FINDING: dict[str, Any] = {
    "severity": "medium",
    "title": "It waits as long as it is told",
    "file": FILE,
    "line": LINE,
    "explanation": "A call holds its permit for ten minutes.",
    "fix": "Bound delay_ms.",
}
RESULT = {"summary": "It gives back what it gets.", "findings": [FINDING]}
OWN: dict[str, dict[str, Any]] = {
    "analyze": {"strengths": ["Small."], "recommendations": ["Keep it."]},
    "codereview": {"verdict": "approve"},
    "debug": {
        "root_cause": "The delay.",
        "hypotheses": [{"hypothesis": "The sleep.", "likelihood": "likely", "evidence": "The code."}],
    },
    "refactor": {"order": ["Name it."], "risks": ["None."]},
    "secaudit": {"risk": "low", "attack_paths": [], "remediation_order": ["Bound it."]},
    "precommit": {"ready": False, "before_commit": ["Bound it."], "commit_message": "Bound the delay"},
    "testgen": {"tests": [{"name": "test_echo", "file": "tests/test_echo.py", "covers": "It.", "code": "pass"}]},
    "docgen": {"documentation": [{"symbol": "echo", "file": FILE, "line": LINE, "text": "Gives back."}]},
    "thinkdeep": {
        "recommendation": "Bound it.",
        "alternatives": [{"option": "Leave it", "advantages": "Easy.", "drawbacks": "Slow."}],
        "open_questions": [],
    },
    "planner": {"plan": [{"step": "Bound it", "detail": "At 10 s.", "done_when": "A test says so."}]},
    "tracer": {"trace": [{"symbol": "echo", "file": FILE, "line": LINE, "role": "The end."}], "side_effects": []},
}
"""The result fields of each tool in addition to summary and findings."""

Saying = Callable[[dict[str, Any]], str]


def prompt_of(body: dict[str, Any]) -> str:
    """The user message of a request to a vendor, including its files."""
    return str(body["messages"][-1]["content"])


@pytest.mark.parametrize("tool", ["debug", "planner"])  # only planner does not ask an expert by default
async def test_three_step_run_on_a_real_file(harness: "Harness", saying: Saying, tool: str) -> None:
    """Two steps send no request and have suggestions. The third sends one request with all findings, and returns the
    result.
    """
    first = await harness.step(tool, "Judge the echo tool.", total_steps=3, findings="It is small.")
    assert (first["status"], first["step_number"], first["next_step_required"]) == ("in_progress", 1, True)
    assert first["next"]
    thread = first["continuation_id"]
    issue = {"severity": "low", "description": "It waits long.", "file": FILE, "line": LINE}
    second = await harness.step(
        tool, "Read it.", step_number=2, continuation_id=thread, findings="It sleeps.", issues_found=[issue],
        relevant_files=[FILE], hypothesis="The delay is unbounded.", confidence="medium",
    )  # fmt: skip
    assert (second["so_far"]["steps"], second["continuation_id"], harness.request_count) == ([1, 2], thread, 0)
    result = {**RESULT, **OWN[tool]}
    last = await harness.step(
        tool, f"Sure of it. {saying(result)}", step_number=3, continuation_id=thread, use_assistant_model=True
    )
    assert harness.request_count == 1
    assert (last["status"], last["expert_called"], last["total_steps"]) == ("complete", True, 3)
    assert {name: last[name] for name in result} == result
    assert last["issues_found"] == [issue]
    question = prompt_of(harness.last)
    assert f"{LINE}| @tool" in question
    for word in (
        "Judge the echo tool.",
        "It is small.",
        "It sleeps.",
        "unbounded",
        "confidence: medium",
        "[low] It waits long.",
    ):
        assert question.count(word) == 1, word
    assert harness.last["response_format"]["type"] == "json_schema"
    assert [message["role"] for message in harness.last["messages"]] == ["system", "user"]


async def test_single_step_run_of_each_tool(harness: "Harness") -> None:
    """A single step asks the expert once, and an answer that follows the tool's schema is parsed into its fields."""
    for tool in TOOLS:
        before = harness.request_count
        answer = await harness.step(tool, "Judge the echo tool.", relevant_files=[FILE])
        asks_expert = tool != "planner"
        assert (answer["status"], answer["expert_called"], harness.request_count - before) == (
            "complete",
            asks_expert,
            int(asks_expert),
        )
        assert "unstructured" not in answer, tool
        if asks_expert:
            assert answer["findings"][0]["title"] == "Simulated title"
            assert OWN[tool].keys() <= answer.keys(), tool
            assert f"{LINE}| @tool" in prompt_of(harness.last)
        else:
            assert answer["findings"] == []


async def test_failed_last_step_can_be_repeated(harness: "Harness", saying: Saying) -> None:
    """A vendor outage, a timeout and a cancel are errors of the call, and the earlier steps are kept."""
    tool = "debug"
    first = await harness.step(tool, "Judge it.", total_steps=2, findings="It is small.", use_assistant_model=True)
    more = {"step_number": 2, "continuation_id": first["continuation_id"]}

    down = await harness.fail(tool, "Sure. [[sim:status=503]]", **more)
    assert isinstance(down, ServiceUnavailableError)
    late = await harness.fail(tool, "Sure. [[sim:hang]]", timeout=0.3, **more)
    assert isinstance(late, CallTimeoutError)
    await harness.simulator.until_in_flight("kimi", 0)
    hanging = {"step": "Sure. [[sim:hang]]", **more}
    call = asyncio.create_task(harness.client.call(tool, hanging, timeout=60, request_id="hung"))
    await harness.simulator.until_in_flight("kimi", 1)
    assert await harness.client.cancel("hung")
    with pytest.raises(CallCancelledError):
        await call
    await harness.simulator.until_in_flight("kimi", 0)

    before = harness.request_count
    last = await harness.step(tool, f"Sure. {saying({**RESULT, **OWN[tool]})}", **more)
    assert (last["findings"], harness.request_count) == ([FINDING], before + 1)
    assert "It is small." in prompt_of(harness.last)
    assert "[[sim:hang]]" not in str(harness.last)


async def test_vendor_failure_is_not_retried(harness: "Harness") -> None:
    """A request that the vendor refuses is not repeated."""
    await harness.fail("debug", "Why? [[sim:status=400]]")
    assert harness.request_count == 1


async def test_planner_sends_no_request(harness: "Harness") -> None:
    """The steps are the result, each with its own arguments."""
    first = await harness.step("planner", "Move the outbox.", total_steps=2)
    last = await harness.step(
        "planner", "Start it by itself.", continuation_id=first["continuation_id"], branch_from_step=1, branch_id="b",
        issues_found=[{"severity": "low", "description": "Two processes."}],
    )  # fmt: skip
    assert last["steps"] == [
        {"number": 1, "step": "Move the outbox."},
        {"number": 2, "step": "Start it by itself.", "branch_from_step": 1, "branch_id": "b"},
    ]
    assert last["findings"] == [{"severity": "low", "title": "Two processes."}]
    assert (last["expert_called"], harness.request_count) == (False, 0)


@pytest.mark.parametrize("message", [{"use_assistant_model": False}, {"confidence": "certain"}])
async def test_caller_can_skip_the_expert(harness: "Harness", message: dict[str, Any]) -> None:
    """No request is sent, and a notice names the reason."""
    answer = await harness.step("codereview", "Fine.", findings="No faults.", **message)
    assert (answer["expert_called"], answer["summary"], harness.request_count) == (False, "No faults.", 0)
    assert next(iter(message)).removesuffix("_model") in answer["notice"].replace("the confidence is", "confidence")


async def test_a_reply_without_json_is_returned_as_text(harness: "Harness") -> None:
    """``unstructured`` says why; the model is not asked again."""
    answer = await harness.step("analyze", "Why? [[sim:say=It is small.]]", model="kimi-k2.7-code")
    assert answer["unstructured"] == "the answer has no JSON object"
    assert harness.request_count == 1


async def test_a_truncated_reply_has_a_notice(harness: "Harness") -> None:
    answer = await harness.step("analyze", "Why? [[sim:length]]")
    assert answer["unstructured"]
    assert "truncated at the token limit" in answer["notice"]


async def test_an_empty_reply_is_an_error(context: "Context") -> None:
    """The conversation stays unchanged."""
    context.completion = Completion(" ", "kimi-see", "length", None, reasoning="hm")
    tool = load_registry().get("analyze")
    with pytest.raises(ProviderError, match=r"kimi-see returned no text: .* Send the last step again\."):
        await tool.function(bind(tool, {"step": "Why?"}), context)
    assert context.threads == {}


async def test_a_model_without_json_support_gets_the_schema_in_its_instructions(harness: "Harness") -> None:
    answer = await harness.step(
        "codereview", f"Judge. [[sim:say={json.dumps(RESULT | OWN['codereview'])}]]", model="kimi-k2.7-code"
    )
    assert answer["findings"] == [FINDING]
    assert "response_format" not in harness.last
    assert '"verdict": {"type": "string", "enum": ["approve"' in harness.last["messages"][0]["content"]


async def test_auto_selects_a_model_with_json_support(harness: "Harness") -> None:
    answer = await harness.step("codereview", "Judge.", model="auto")
    assert answer["model_choice_reason"]
    assert harness.last["response_format"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [("src/gone.py", NotFoundError), ("/etc/hostname", PermissionDeniedError), ("src\0", InvalidArgumentsError)],
)
async def test_invalid_path_is_refused_in_its_step(harness: "Harness", path: str, kind: type) -> None:
    """The step that names an invalid path fails, and not the last step."""
    error = await harness.fail("debug", "Why?", total_steps=3, relevant_files=[FILE, path])
    assert isinstance(error, kind)
    assert error.details
    assert list(error.details["fields"]) == ["relevant_files.1"]


async def test_invalid_model_is_refused_in_its_step(harness: "Harness") -> None:
    """The step that names an unknown model fails, and not the last step."""
    error = await harness.fail("debug", "Why?", total_steps=3, model="glm-4.66")
    assert isinstance(error, InvalidArgumentsError)
    assert "did you mean 'glm-4.6'" in error.message
    first = await harness.step("debug", "Why?", total_steps=3, model="auto")
    assert first["status"] == "in_progress"


async def test_file_deleted_before_the_last_step_is_omitted(open_harness: "OpenHarness", tmp_path: Path) -> None:
    """The expert gets the current content of the other files, and the answer reports the omitted file."""
    harness = await open_harness(TOOLD_WORKSPACE=str(tmp_path))
    (tmp_path / "gone.py").write_text("gone = 1\n")
    (tmp_path / "kept.py").write_text("kept = 1\n")
    first = await harness.step("debug", "Why?", total_steps=2, relevant_files=["gone.py", "kept.py"])
    (tmp_path / "gone.py").unlink()
    (tmp_path / "kept.py").write_text("kept = 2\n")
    last = await harness.step("debug", "So.", continuation_id=first["continuation_id"], relevant_files=["./kept.py"])
    (missing,) = last["omitted"]
    assert missing["what"] == "gone.py"
    assert missing["reason"].startswith("'gone.py' does not exist.")
    assert prompt_of(harness.last).count("1| kept = 2") == 1


async def test_prompt_over_the_window_is_refused(harness: "Harness") -> None:
    """The error has the context window, and no request is sent."""
    error = await harness.fail("analyze", "Why? " + "word " * 20_000, model="moonshot-v1-8k")
    assert isinstance(error, ContextLengthExceededError)
    assert error.details
    assert error.details["context_window"] == 8192
    assert harness.request_count == 0


async def test_later_step_without_its_conversation_begins_new_work(harness: "Harness") -> None:
    """A missing id, and one that the client made up, begin new work with a notice; an expired id is refused."""
    for arguments in ({}, {"continuation_id": "my-review-1"}):
        result = await harness.client.call("debug", {"step": "So.", "step_number": 2, "total_steps": 3, **arguments})
        assert isinstance(result.structured, dict)
        assert result.structured["so_far"]["steps"] == [2]
        assert result.structured["continuation_id"] != "my-review-1"
        assert len(result.metadata.argument_notices) == 1
        assert "began a new piece of work" in result.metadata.argument_notices[0]
    assert isinstance(await harness.fail("debug", "So.", step_number=2, continuation_id="0" * 32), NotFoundError)
    assert harness.request_count == 0


async def test_strict_arguments_refuse_a_later_step_without_its_conversation(open_harness: "OpenHarness") -> None:
    harness = await open_harness(TOOLD_STRICT_ARGUMENTS="true")
    assert isinstance(await harness.fail("debug", "So.", step_number=2), InvalidArgumentsError)
    assert isinstance(await harness.fail("debug", "So.", step_number=2, continuation_id="mine"), NotFoundError)


async def test_the_expert_gets_images_and_settings_of_all_steps(open_harness: "OpenHarness", tmp_path: Path) -> None:
    """Images of earlier steps and of the last one, thinking and web search reach the vendor; a ``data:`` image of an
    earlier step is reported as not kept.
    """
    harness = await open_harness(TOOLD_WORKSPACE=str(tmp_path))
    (tmp_path / "before.gif").write_bytes(b"GIF89a\x01\x00")
    (tmp_path / "gone.gif").write_bytes(b"GIF89a\x02\x00")
    inline = "data:image/gif;base64,R0lGODlhAwA="
    first = await harness.step(
        "debug", "Why?", total_steps=2, images=["before.gif", "gone.gif", inline], thinking_mode="low"
    )
    assert [part["what"] for part in first["omitted"]] == ["images.2"]
    (tmp_path / "gone.gif").unlink()
    last = await harness.step("debug", "So.", continuation_id=first["continuation_id"], images=[inline])
    parts = harness.last["messages"][-1]["content"]
    assert [part["image_url"]["url"] for part in parts if part["type"] == "image_url"] == [
        inline,
        "data:image/gif;base64,R0lGODlhAQA=",
    ]
    assert [part["what"] for part in last["omitted"]] == ["gone.gif"]
    assert last["thinking"] == "low"


async def test_the_expert_searches_the_web_if_asked(context: "Context") -> None:
    """Web search and temperature of an earlier step apply to the expert call."""
    tool = load_registry().get("thinkdeep")
    context.completion = Completion(json.dumps(RESULT | OWN["thinkdeep"]), "kimi-see", "stop", None)
    first = {"step": "Why?", "total_steps": 2, "use_websearch": True, "temperature": "0.5"}
    answer = await tool.function(bind(tool, first), context)
    await tool.function(bind(tool, {"step": "So.", "continuation_id": answer.data["continuation_id"]}), context)
    (request,) = context.requests
    assert (request.temperature, [type(tool) for tool in request.tools]) == (0.5, [WebSearch])


async def test_files_of_own_arguments_are_attached_after_the_relevant_ones(harness: "Harness") -> None:
    """A wrong path is refused in its step."""
    style = "src/tools/builtin/challenge.py"
    await harness.step("refactor", "Judge.", style_guide_examples=[style], relevant_files=[FILE])
    question = prompt_of(harness.last)
    assert 0 < question.index('1| """``echo``') < question.index('1| """``challenge``')
    assert f'- style_guide_examples: ["{style}"]' in question
    error = await harness.fail("refactor", "Judge.", total_steps=2, style_guide_examples=["gone.py"])
    assert error.details
    assert list(error.details["fields"]) == ["style_guide_examples.0"]


async def test_tracer_asks_the_user_first(harness: "Harness") -> None:
    """With ``ask`` no model is asked, and the answer has the question; the run ends with the user's choice."""
    first = await harness.step("tracer", "Trace echo.", trace_mode="ask", relevant_files=[FILE])
    assert (first["status"], first["question"]["choices"]) == ("in_progress", ["precision", "dependencies"])
    assert first["next"][0].startswith("Ask the user: ")
    assert harness.request_count == 0
    last = await harness.step(
        "tracer", "Chosen.", trace_mode="dependencies", continuation_id=first["continuation_id"], confidence="certain"
    )
    assert (last["status"], last["expert_called"]) == ("complete", False)


async def test_conversation_continues_across_tools(harness: "Harness", saying: Saying) -> None:
    """The expert gets earlier turns, another tool gets the steps, and a new run starts empty."""
    reply = await harness.client.call("chat", {"prompt": "Call it Bert."})
    assert isinstance(reply.structured, dict)
    thread = reply.structured["continuation_id"]
    await harness.step("debug", f"Why? {saying(RESULT | OWN['debug'])}", continuation_id=thread, findings="Odd.")
    assert [message["content"][:13] for message in harness.last["messages"][1:2]] == ["Call it Bert."]
    await harness.step("codereview", "Judge it.", continuation_id=thread, total_steps=2)
    await harness.client.call("chat", {"prompt": "And?", "continuation_id": thread})
    reported = json.dumps(harness.last["messages"])
    assert "Odd." in reported
    assert FINDING["title"] in reported
    assert "Step 1: Judge it." in reported
    repeat = await harness.step("debug", "Once more.", continuation_id=thread, total_steps=2)
    assert (repeat["step_number"], repeat["so_far"]["steps"]) == (1, [1])


async def test_the_expert_reads_files_of_earlier_turns(harness: "Harness") -> None:
    """Those that other tools had attached, and those of an earlier run; a file of both is sent once."""
    reply = await harness.client.call("chat", {"prompt": "Look.", "files": [FILE, "Makefile"]})
    assert isinstance(reply.structured, dict)
    thread = {"continuation_id": reply.structured["continuation_id"]}
    for _ in range(2):
        await harness.step("codereview", "Judge it.", relevant_files=[FILE], **thread)
        prompt = prompt_of(harness.last)
        assert prompt.count(f'<file name="{FILE}">') == 1
        assert prompt.count('<file name="Makefile">\n  1| ') == 1
    await harness.step("debug", "Why?", **thread)
    assert prompt_of(harness.last).count("<file ") == 2


async def test_steps_survive_a_restart(open_harness: "OpenHarness") -> None:
    """A run continues after a restart of the daemon."""
    first = await (harness := await open_harness()).step("debug", "Why?", total_steps=2, findings="It is odd.")
    await harness.close()
    again = await open_harness()
    last = await again.step("debug", "So.", continuation_id=first["continuation_id"])
    assert last["status"] == "complete"
    assert "It is odd." in prompt_of(again.last)


async def test_json_is_not_streamed(harness: "Harness") -> None:
    """No chunks are streamed. The final text is readable."""
    chunks: list[str] = []
    result = await harness.client.call("analyze", {"step": "Why?"}, on_chunk=chunks.append)
    assert chunks == []
    assert result.text.startswith("Simulated summary")
