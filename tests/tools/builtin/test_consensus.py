"""``consensus`` asks each model once, in parallel, then requests one synthesis, and reports models that fail."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import (
    CallError,
    InvalidArgumentsError,
    NotFoundError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from toold.providers import Completion, CompletionRequest
from toold.tools import ToolOutput, bind
from toold.tools.builtin.consensus import consensus

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

BOTH = ["kimi-small", "glm-muse"]


@pytest.fixture
def context(context: "Context") -> "Context":
    """Each model answers with its name."""
    for name in ("kimi-see", "kimi-small", "glm-muse"):
        context.replies[name] = Completion(f"{name} says so.", name, "stop", None)
    return context


async def agree(context: "Context", **arguments: Any) -> ToolOutput:
    answer = await consensus.function(bind(consensus, {"prompt": "Ship it?", "models": BOTH} | arguments), context)
    assert isinstance(answer, ToolOutput)
    return answer


async def test_each_model_is_asked_once_before_the_synthesis(context: "Context") -> None:
    """There are n + 1 completions: the same question to all models, then their named answers to the synthesis model."""
    answer = await agree(context)
    *asked, synthesis = context.requests
    assert sorted(request.model.id for request in asked) == sorted(BOTH)
    assert all(request.messages[-1].content == "Ship it?" for request in asked)
    assert synthesis.model.id == "kimi-see"
    assert [(file.name, file.text) for file in synthesis.files] == [
        ("kimi-small", "kimi-small says so."),
        ("glm-muse", "glm-muse says so."),
    ]
    assert answer.text == "kimi-see says so."
    assert [(row["model"], row["text"]) for row in answer.data["answers"]] == [
        ("kimi-small", "kimi-small says so."),
        ("glm-muse", "glm-muse says so."),
    ]
    assert answer.data["failed"] == []
    assert [turn.text for turn in context.threads["thread-1"].turns] == ["Ship it?", "kimi-see says so."]


async def test_progress_names_the_models_that_answered(context: "Context") -> None:
    """Each model's answer and the synthesis are reported as progress."""
    await agree(context)
    assert {"kimi-small answered", "glm-muse answered", "asking kimi-see"} <= set(context.reports)


async def test_stance_is_sent_to_its_model_and_to_the_synthesis(context: "Context") -> None:
    """The same model can take both sides, each with its own instructions."""
    sides = [{"model": "small", "stance": "for"}, {"model": "small", "stance": "against"}]
    answer = await agree(context, models=sides, synthesis_model="glm-muse")
    *asked, synthesis = context.requests
    assert ["Argue for" in str(request.messages[0].content) for request in asked] == [True, False]
    assert ["Argue against" in str(request.messages[0].content) for request in asked] == [False, True]
    assert [file.name for file in synthesis.files] == [
        "kimi-small (assigned stance: for)",
        "kimi-small (assigned stance: against)",
    ]
    assert synthesis.model.id == "glm-muse"
    assert [row["stance"] for row in answer.data["answers"]] == ["for", "against"]


async def test_all_models_get_the_files_and_the_history(context: "Context", write: Callable[..., Path]) -> None:
    """Every model receives the files and the earlier turns of the conversation."""
    write("a.txt", "hi")
    first = await agree(context)
    await agree(context, files=["a.txt"], continuation_id=first.data["continuation_id"])
    for request in context.requests[3:5]:
        assert [file.text for file in request.files] == ["hi"]
        assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("form", [{}, {"step_number": 1}], ids=["at once", "in steps"])
async def test_folders_and_files_of_earlier_turns_are_read(
    context: "Context", write: Callable[..., Path], form: dict[str, Any]
) -> None:
    """A folder stands for its text files; a later question gets them again; `omitted` has a file that was deleted."""
    write("lib/a.txt", "hi")
    gone = write("lib/b.txt", "there")
    first = await agree(context, files=["lib"], models=["glm-muse", "kimi-small"], **form)
    assert [file.name for file in context.requests[0].files] == ["lib/a.txt", "lib/b.txt"]
    assert first.data["folders"][0]["files"] == ["a.txt", "b.txt"]
    thread = {"continuation_id": first.data["continuation_id"]}
    if form:
        await agree(context, step_number=2, **thread)
    before = len(context.requests)
    gone.unlink()
    then = await agree(context, prompt="And now?", models=["glm-muse", "kimi-small"], **form, **thread)
    assert [file.name for file in context.requests[before].files] == ["lib/a.txt"]
    row = then.data["answer"] if form else then.data["answers"][0]
    assert [part["what"] for part in row["omitted"]] == ["lib/b.txt"]


async def test_failed_model_is_reported(context: "Context") -> None:
    """The other answers are used, and the failure is reported."""
    context.replies["kimi-small"] = RateLimitedError("too much")
    answer = await agree(context)
    assert answer.data["failed"] == [
        {"requested_model": "kimi-small", "stance": "neutral", "code": "RATE_LIMITED", "message": "too much"},
    ]
    assert [row["model"] for row in answer.data["answers"]] == ["glm-muse"]
    assert "kimi-small failed (RATE_LIMITED)" in context.reports


async def test_duplicate_models_with_the_same_stance_are_refused(context: "Context") -> None:
    """The call is refused before any model is asked. A different stance is allowed."""
    with pytest.raises(InvalidArgumentsError, match=r"^models\.1: kimi-small is already listed with the same stance"):
        await agree(context, models=["kimi-small", "small"])
    assert not context.requests
    await agree(context, models=["kimi-small", {"model": "small", "stance": "against"}])


async def test_unsuitable_model_counts_as_failed(context: "Context", write: Callable[..., Path]) -> None:
    """A model that does not accept images is reported as failed."""
    write("a.gif", b"GIF89a\x01\x00")
    answer = await agree(context, models=["kimi-see", "glm-muse"], images=["a.gif"])
    assert [row["code"] for row in answer.data["failed"]] == ["VALIDATION_ERROR"]


async def test_hung_model_leaves_time_for_the_synthesis(context: "Context", monkeypatch: pytest.MonkeyPatch) -> None:
    """A hung model times out after its share of the time and is reported."""
    complete = context.complete

    async def hang(request: CompletionRequest, **more: Any) -> Completion:
        if request.model.id == "kimi-small":
            await asyncio.Event().wait()
        return await complete(request, **more)

    monkeypatch.setattr(context, "complete", hang)
    monkeypatch.setattr(context, "remaining", lambda: 0.5)
    answer = await agree(context)
    assert [row["code"] for row in answer.data["failed"]] == ["TIMEOUT"]
    assert answer.text == "kimi-see says so."


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (ServiceUnavailableError("a"), ServiceUnavailableError("b"), ServiceUnavailableError),
        (ServiceUnavailableError("a"), RateLimitedError("b"), ProviderError),
    ],
)
async def test_call_fails_if_all_models_fail(
    context: "Context", first: CallError, second: CallError, kind: type[CallError]
) -> None:
    """The error has the common code. No synthesis is requested, and no conversation is stored."""
    context.replies |= {"kimi-small": first, "glm-muse": second}
    with pytest.raises(kind, match=r"No model answered\. kimi-small: a; glm-muse: b") as caught:
        await agree(context)
    assert (caught.value.executed, caught.value.transient) == ("no", True)
    assert len(context.requests) == 2
    assert context.threads == {}


async def test_failed_synthesis_error_contains_the_answers(context: "Context") -> None:
    """The error contains the models' answers, because they were paid for."""
    context.replies["kimi-see"] = ServiceUnavailableError("down", retry_after_ms=5)
    with pytest.raises(ServiceUnavailableError, match="the synthesis failed: down") as caught:
        await agree(context)
    error = caught.value
    assert (error.executed, error.retry_after_ms) == ("maybe", 5)
    assert error.details is not None
    assert [row["text"] for row in error.details["answers"]] == ["kimi-small says so.", "glm-muse says so."]
    assert context.threads == {}


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"prompt": ""}, InvalidArgumentsError, "prompt "),
        ({"models": None}, InvalidArgumentsError, "models should have at least 2 items, not 0"),
        ({"models": ["auto"]}, InvalidArgumentsError, "models should have at least 2 items"),
        ({"models": ["auto"] * 9}, InvalidArgumentsError, "models should have at most 8 items"),
        (
            {"models": ["small", "SMALL "]},
            InvalidArgumentsError,
            "models.1: kimi-small is already listed with the same stance",
        ),
        ({"models": ["small", "nobody"]}, InvalidArgumentsError, "models.1: Unknown model 'nobody'"),
        ({"models": ["small", {"model": "glm-muse", "stance": "angry"}]}, InvalidArgumentsError, "models.1.stance "),
        ({"models": ["small", {"stance": "for"}]}, InvalidArgumentsError, "models.1.model is missing"),
        ({"synthesis_model": "nobody"}, InvalidArgumentsError, "synthesis_model: Unknown model 'nobody'"),
        ({"files": ["gone.txt"]}, NotFoundError, "files.0: "),
        ({"images": ["gone.png"]}, NotFoundError, "images.0: "),
        ({"thinking": 3}, InvalidArgumentsError, "thinking "),
        ({"continuation_id": "0" * 32}, NotFoundError, "no such conversation"),
        ({"step_number": 1, "models": []}, InvalidArgumentsError, "models should have at least 1 item, not 0"),
        ({"step_number": 1, "models": ["nobody"]}, InvalidArgumentsError, "models.0: Unknown model 'nobody'"),
    ],
)
async def test_invalid_arguments_are_refused_before_any_request(
    context: "Context", arguments: dict[str, Any], kind: type[CallError], says: str
) -> None:
    """The error names each invalid argument and its position."""
    with pytest.raises(kind) as caught:
        await agree(context, **arguments)
    assert says in caught.value.message
    assert context.requests == []


SIDES = [
    {"model": "kimi-small", "stance": "for", "stance_prompt": "Praise it."},
    {"model": "glm-muse", "stance": "against"},
]
FORMER = {"total_steps": 2, "next_step_required": True, "current_model_index": 0, "model_responses": []}


async def step(context: "Context", number: int, text: str, **arguments: Any) -> ToolOutput:
    """A step as earlier servers took it."""
    sent = {"step": text, "step_number": number, "findings": f"view {number}", **FORMER, **arguments}
    answer = await consensus.function(bind(consensus, sent), context)
    assert isinstance(answer, ToolOutput)
    return answer


async def test_each_step_asks_one_model(context: "Context", write: Callable[..., Path]) -> None:
    """The last step also gets the synthesis, of all answers and the caller's views; a further one gets it again."""
    write("a.txt", "hi")
    first = await step(context, 1, "Ship it?", models=SIDES, relevant_files=["a.txt"])
    assert first.text is not None
    assert first.text.startswith("kimi-small (assigned stance: for):\n\nkimi-small says so.")
    assert (first.data["next_step_required"], first.data["total_steps"], len(context.requests)) == (True, 2, 1)
    thread = {"continuation_id": first.data["continuation_id"]}
    last = await step(context, 2, "Kimi likes it.", **thread)
    muse_says = "glm-muse (assigned stance: against):\n\nglm-muse says so."
    small, muse, synthesis = context.requests
    assert "Praise it." in str(small.messages[0].content)
    assert "Argue for" not in str(small.messages[0].content)
    assert [request.messages[-1].content for request in (small, muse)] == ["Ship it?", "Ship it?"]
    assert [[file.name for file in request.files] for request in (small, muse)] == [["a.txt"], ["a.txt"]]
    assert [(file.name, file.text) for file in synthesis.files] == [
        ("kimi-small (assigned stance: for)", "kimi-small says so."),
        ("glm-muse (assigned stance: against)", "glm-muse says so."),
        ("the caller", "view 1\n\nview 2"),
    ]
    assert last.text == f"{muse_says}\n\nSynthesis:\n\nkimi-see says so."
    assert (last.data["text"], last.data["status"]) == ("kimi-see says so.", "complete")
    assert last.data["next_step_required"] is False
    assert [row["stance"] for row in last.data["answers"]] == ["for", "against"]
    assert (await step(context, 3, "Synthesis", **thread)).data == last.data
    assert len(context.requests) == 3


async def test_former_clients_get_answers_of_models_without_the_option(context: "Context") -> None:
    """A model that does not accept images or does not think answers without; for others it counts as failed."""
    sent: dict[str, Any] = {"models": SIDES, "images": ["https://example.org/a.png"], "thinking": "low"}
    assert (await step(context, 1, "Ship it?", **sent)).data["answer"]["code"] == "VALIDATION_ERROR"
    context.former_client = True
    assert "text" in (await step(context, 1, "Ship it?", **sent)).data["answer"]
    assert len(context.notices) == 2


async def test_a_repeated_step_asks_its_model_again(context: "Context") -> None:
    """A failed model counts as a step; the repeated one replaces it, and another run begins with step 1."""
    context.replies["kimi-small"] = RateLimitedError("too much")
    first = await step(context, 1, "Ship it?", models=SIDES)
    assert first.data["answer"]["code"] == "RATE_LIMITED"
    thread = {"continuation_id": first.data["continuation_id"]}
    last = await step(context, 2, "Hm.", **thread)
    assert [row["code"] for row in last.data["failed"]] == ["RATE_LIMITED"]
    fresh = await step(context, 1, "And now?", models=SIDES[1:], **thread)
    assert (fresh.data["status"], fresh.data["total_steps"], fresh.data["failed"]) == ("complete", 1, [])


async def test_a_later_step_of_no_known_run_begins_one(context: "Context") -> None:
    """The first model is asked, with a notice; without models the call is refused."""
    answer = await step(context, 2, "Ship it?", models=SIDES)
    assert (answer.data["step_number"], len(context.notices)) == (1, 1)
    with pytest.raises(InvalidArgumentsError, match="models should have at least 1 item"):
        await step(context, 2, "Ship it?", continuation_id="mine")


async def test_the_steps_fail_if_no_model_answers(context: "Context") -> None:
    """The last step is an error with all reasons, and can be repeated."""
    context.replies |= {"kimi-small": RateLimitedError("a"), "glm-muse": RateLimitedError("b")}
    first = await step(context, 1, "Ship it?", models=SIDES)
    thread = {"continuation_id": first.data["continuation_id"]}
    with pytest.raises(ProviderError, match=r"No model answered\. kimi-small .*: a; glm-muse .*: b"):
        await step(context, 2, "Hm.", **thread)
    context.replies["glm-muse"] = Completion("No.", "glm-muse", "stop", None)
    assert (await step(context, 2, "Hm.", **thread)).data["answers"][0]["text"] == "No."
