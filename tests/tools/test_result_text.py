"""The texts of conversational answers, in both forms."""

from typing import Any

import msgspec
import pytest
from toold.protocol.tool_call import ImageContent, TextContent
from toold.tools.result_text import conversational_outputs, result_text_for

TEXT = TextContent("Said.")
RUN = {"step_number": 2, "total_steps": 3, "continuation_id": "c-1"}


def json_of(tool: str, data: dict[str, Any]) -> dict[str, Any]:
    """The JSON object of an answer with this data."""
    (block,) = conversational_outputs(tool, (TEXT,), data, "json")
    assert isinstance(block, TextContent)
    answer: dict[str, Any] = msgspec.json.decode(block.text)
    return answer


@pytest.mark.parametrize(
    ("requested", "toolset", "setting", "former", "form"),
    [
        (None, None, None, False, "prose"),
        (None, None, None, True, "json"),
        (None, None, "prose", True, "prose"),
        (None, "json", "prose", False, "json"),
        ("prose", "json", "json", True, "prose"),
    ],
)
def test_the_client_decides_before_the_toolset_and_the_operator(
    requested: Any, toolset: Any, setting: Any, former: bool, form: str
) -> None:
    """Only if none of them does, a client that used a former name gets JSON."""
    assert result_text_for(requested, toolset, setting, former=former) == form


def test_prose_ends_with_a_text_of_its_own() -> None:
    """The tool's text and other blocks stay as they are."""
    image = ImageContent("", "image/png")
    outputs = conversational_outputs("chat", (TEXT, image), {"continuation_id": "c-1"}, "prose")
    assert outputs == (TEXT, image, TextContent("continuation_id: c-1"))


@pytest.mark.parametrize("data", [msgspec.UNSET, None, [], {}, {"continuation_id": None}])
def test_without_a_conversation_nothing_changes(data: Any) -> None:
    """An answer whose data has no id, in either form."""
    assert conversational_outputs("chat", (TEXT,), data, "prose") == (TEXT,)
    assert conversational_outputs("chat", (TEXT,), data, "json") == (TEXT,)


def test_a_chat_offers_its_continuation() -> None:
    """Status, content, offer and model as earlier servers sent them."""
    answer = json_of("chat", {"continuation_id": "c-1", "model": "m", "provider": "kimi"})
    assert (answer["status"], answer["content"], answer["continuation_id"]) == (
        "continuation_available",
        "Said.",
        "c-1",
    )
    assert answer["continuation_offer"]["continuation_id"] == "c-1"
    assert answer["metadata"] == {"tool_name": "chat", "model_used": "m", "provider_used": "kimi"}
    assert json_of("consensus", {"continuation_id": "c-1"})["status"] == "consensus_workflow_complete"


@pytest.mark.parametrize(
    ("tool", "rest", "status"),
    [
        ("debug", {"next_step_required": True, "next": ["Read a.py."]}, "pause_for_investigation"),
        ("codereview", {"next_step_required": False, "expert_called": True}, "calling_expert_analysis"),
        ("debug", {"next_step_required": False, "expert_called": False}, "certain_confidence_proceed_with_fix"),
        ("tracer", {"next_step_required": True, "question": {}}, "mode_selection_required"),
        ("mine", {"next_step_required": True}, "pause_for_mine"),
        ("mine", {"next_step_required": False}, "mine_complete"),
    ],
)
def test_a_step_tells_where_the_run_is(tool: str, rest: dict[str, Any], status: str) -> None:
    """The numbers are the caller's; the status has the words of the tool."""
    answer = json_of(tool, RUN | rest)
    assert answer["status"] == status
    assert {name: answer[name] for name in RUN} == RUN
    assert (answer["next_step_required"], answer["content"]) == (rest["next_step_required"], "Said.")
    assert answer.get("required_actions", []) == rest.get("next", [])
    assert ("expert_analysis" in answer) == bool(rest.get("expert_called"))


def test_a_step_of_consensus_has_its_models_answer() -> None:
    """Scripts of earlier servers read the verdict; after the last step they also read which models answered."""
    row = {"requested_model": "m", "stance": "for", "text": "Yes."}
    first = json_of(
        "consensus", RUN | {"step_number": 1, "next_step_required": True, "next": ["Go on."], "answer": row}
    )
    assert first["status"] == "analysis_and_first_model_consulted"
    assert (first["model_consulted"], first["model_stance"], first["current_model_index"]) == ("m", "for", 1)
    assert first["model_response"] == {"model": "m", "stance": "for", "status": "success", "verdict": "Yes."}
    assert first["required_actions"] == ["Go on."]
    failed = {"requested_model": "m", "stance": "for", "code": "TIMEOUT", "message": "Too slow."}
    second = json_of("consensus", RUN | {"next_step_required": True, "answer": failed})
    assert (second["status"], second["model_response"]["status"]) == ("model_consulted", "error")
    last = json_of("consensus", RUN | {"next_step_required": False, "answers": [row]})
    assert (last["status"], last["consensus_complete"]) == ("consensus_workflow_complete", True)
    assert last["complete_consensus"] == {"models_consulted": ["m:for"], "total_responses": 1}
    assert last["model_response"]["verdict"] == "Yes."
