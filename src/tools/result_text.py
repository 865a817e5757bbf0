"""The texts of conversational answers, from which clients that read only texts get the ``continuation_id``. Pure.

``prose``: the tool's text, and then a separate text ``continuation_id: …``. ``json``: the tool's text within a JSON
object, as earlier servers sent it (docs/protocol.md, The text of conversational answers).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ..protocol.error_codes import ToolError
from ..protocol.tool_call import ContentBlock, Json, TextContent, continuation_line

ResultText = Literal["json", "prose"]


class _StepWords(NamedTuple):
    """The terms of earlier servers for the work of a step tool."""

    pause: str
    """The status before the last step, without its prefix ``pause_for_``."""
    done: str
    """The status of a run that ended without an expert."""


_STEP_WORDS: Final[Mapping[str, _StepWords]] = {
    "analyze": _StepWords("analysis", "analysis_complete_ready_for_implementation"),
    "codereview": _StepWords("code_review", "code_review_complete_ready_for_implementation"),
    "debug": _StepWords("investigation", "certain_confidence_proceed_with_fix"),
    "docgen": _StepWords("documentation_analysis", "documentation_analysis_complete"),
    "planner": _StepWords("planning", "planning_complete"),
    "precommit": _StepWords("validation", "validation_complete_ready_for_commit"),
    "refactor": _StepWords("refactoring_analysis", "refactoring_analysis_complete_ready_for_implementation"),
    "secaudit": _StepWords("security_audit", "security_analysis_complete"),
    "testgen": _StepWords("test_analysis", "test_generation_complete_ready_for_implementation"),
    "thinkdeep": _StepWords("thinkdeep", "deep_thinking_complete_ready_for_implementation"),
    "tracer": _StepWords("tracing", "tracing_complete"),
}
"""For other tools, such as the operator's workflows, ``_status`` uses the tool's name."""
_CONSENSUS_DONE: Final = "consensus_workflow_complete"


def result_text_for(
    requested: ResultText | None, toolset: ResultText | None, setting: ResultText | None, *, former: bool
) -> ResultText:
    """The form for a session: requested by its client, else of its toolset, else set by the operator. The default is
    ``json`` for a client that used an argument name of an earlier server.
    """
    return requested or toolset or setting or ("json" if former else "prose")


def conversational_outputs(
    tool: str, outputs: tuple[ContentBlock, ...], structured: Json | msgspec.UnsetType, form: ResultText
) -> tuple[ContentBlock, ...]:
    """The outputs with the ``continuation_id`` of the data; unchanged if there is none."""
    if not isinstance(structured, dict) or not isinstance(structured.get("continuation_id"), str):
        return outputs
    first, *others = outputs
    if form == "json" and isinstance(first, TextContent):
        return (TextContent(msgspec.json.encode(former_answer(tool, first.text, structured)).decode()), *others)
    return (*outputs, TextContent(continuation_line(structured["continuation_id"])))


def former_answer(tool: str, text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a conversational tool as earlier servers sent it, with ``text`` as its ``content``."""
    continuation_id = data["continuation_id"]
    answer: dict[str, Any] = {"status": _status(tool, data)}
    if "step_number" in data:
        answer |= {name: data.get(name) for name in ("step_number", "total_steps", "next_step_required")}
    answer |= {"continuation_id": continuation_id, "content": text, "content_type": "text"}
    if "step_number" in data:
        answer |= _step_fields(tool, text, data)
    else:
        answer["continuation_offer"] = {
            "continuation_id": continuation_id,
            "note": f"Send this continuation_id to continue the conversation with {tool} or another tool.",
        }
    model = {"model_used": data.get("model"), "provider_used": data.get("provider")}
    answer["metadata"] = {"tool_name": tool, **{name: value for name, value in model.items() if value is not None}}
    return answer


def former_error(error: ToolError) -> TextContent:
    """An error as earlier servers sent it, for clients that read only texts."""
    answer = {"status": "error", "content": f"{error.code}: {error.message}", "content_type": "text"}
    return TextContent(msgspec.json.encode(answer).decode())


def _status(tool: str, data: Mapping[str, Any]) -> str:
    if tool == "consensus":
        if data.get("next_step_required"):
            return "analysis_and_first_model_consulted" if data["step_number"] == 1 else "model_consulted"
        return _CONSENSUS_DONE
    if "step_number" not in data:
        return "continuation_available"
    words = _STEP_WORDS.get(tool, _StepWords(tool, f"{tool}_complete"))
    if data.get("next_step_required"):
        return "mode_selection_required" if "question" in data else f"pause_for_{words.pause}"
    if data.get("expert_called"):
        return "calling_expert_analysis"
    return words.done


def _step_fields(tool: str, text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    if tool == "consensus":
        return _consensus_fields(data) | _next_fields(tool, data)
    if data.get("next_step_required"):
        return _next_fields(tool, data)
    if data.get("expert_called"):
        return {"expert_analysis": {"status": "analysis_complete", "raw_analysis": text}}
    return {"skip_expert_analysis": True}


def _next_fields(tool: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The next steps of the caller; empty after the last step."""
    if not data.get("next_step_required"):
        return {}
    actions = [action for action in data.get("next", ()) if isinstance(action, str)]
    step, continuation_id = data["step_number"] + 1, data["continuation_id"]
    steps = f"Then call {tool} with step_number {step} and continuation_id {continuation_id}."
    return {"required_actions": actions, "next_steps": steps}


def _consensus_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """The model of this step, and after the last step all models that answered."""
    answers = data.get("answers", ())
    answer: Mapping[str, Any] = data.get("answer") or next(reversed(answers), {})
    model, stance = answer.get("requested_model"), answer.get("stance")
    fields: dict[str, Any] = {
        "model_consulted": model,
        "model_stance": stance,
        "current_model_index": data["step_number"],
    }
    response = {"model": model, "stance": stance}
    if "text" in answer:
        fields["model_response"] = response | {"status": "success", "verdict": answer["text"]}
    else:
        fields["model_response"] = response | {"status": "error", "error": answer.get("message")}
    if not data.get("next_step_required"):
        asked = [f"{row.get('requested_model')}:{row.get('stance')}" for row in answers]
        fields["consensus_complete"] = True
        fields["complete_consensus"] = {"models_consulted": asked, "total_responses": len(asked)}
    return fields
