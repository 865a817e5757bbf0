"""The calls of PAL's clients (zen-mcp-server before), from the published schemas of its version 9.4."""

from typing import Any, Final

from tests.compat.exai_calls import CONFIDENCES, DEPTHS, FILE, IMAGE, without
from tests.compat.old_calls import Each, Noticed, OldCall, Refused, old_call, old_calls

STEP: Final[dict[str, Any]] = {
    "step": "Examine the shelf.",
    "step_number": 1,
    "total_steps": 3,
    "next_step_required": True,
    "findings": "Nothing yet.",
    "model": "auto",
}
"""The first step of three: no model is asked."""
REPORT: Final[dict[str, Any]] = {
    "files_checked": [FILE],
    "relevant_files": Each([[FILE], ["{workspace}"]]),
    "relevant_context": ["Shelf.add"],
    "issues_found": [{"severity": "high", "description": "The lock is not released.", "location": "shelf.py:5"}],
    "confidence": Each(CONFIDENCES),
    "hypothesis": "The lock is held twice.",
    "use_assistant_model": False,
}
ASKING: Final[dict[str, Any]] = {
    "temperature": 0.2,
    "thinking_mode": Each([Noticed(depth) for depth in DEPTHS]),
    "images": [IMAGE],
}
LACKED: Final[dict[str, Any]] = {"thinking_mode": Noticed("low"), "images": Noticed([IMAGE])}
"""Options that a model without thinking and images lacks."""
SEVERITIES: Final = Each(["critical", "high", "medium", "low", "all"])
VALIDATION: Final = Each([Noticed("external"), Noticed("internal")])
VIEWS: Final = [
    {"model": "glm-4.6", "stance": "for", "stance_prompt": "Argue for it."},
    {"model": "kimi-k2-0905-preview", "stance": "against"},
    {"model": "glm-4.6", "stance": "neutral"},
]


def step_calls(tool: str, base: dict[str, Any], **arguments: Any) -> tuple[OldCall, ...]:
    """The calls of a tool that works in steps: first steps with one argument each, a later one, and the last one."""
    return (
        *old_calls("pal", tool, base, continuation_id="{conversation}", **arguments),
        old_call(f"pal {tool} a later step", tool, base | {"step_number": 2, "continuation_id": "{conversation}"}),
        old_call(
            f"pal {tool} the last step",
            tool,
            base | {"step_number": 3, "next_step_required": False},
            "continuation_id",
        ),
    )


CALLS: Final[tuple[OldCall, ...]] = (
    *old_calls(
        "pal",
        "chat",
        {"prompt": "What does the shelf do?", "working_directory_absolute_path": Noticed("{workspace}")},
        absolute_file_paths=Each([Noticed([FILE]), Noticed(["{workspace}"]), Noticed(["shelf.py"])]),
        images=Each([[IMAGE], ["{workspace}/dot.png"]]),
        model=Each(["auto", "kimi-k2-0905-preview", Refused("gemini-2.5-pro", "VALIDATION_ERROR")]),
        temperature=0.5,
        thinking_mode=Each([Noticed(depth) for depth in DEPTHS]),
        continuation_id="{conversation}",
    ),
    old_call(
        "pal chat options that the model lacks",
        "chat",
        {
            "prompt": "Why?",
            "working_directory_absolute_path": Noticed("{workspace}"),
            "model": "kimi-k2.6",
            "temperature": Noticed(0.2),
        },
    ),
    old_call(
        "pal thinkdeep the last step with options that the model lacks",
        "thinkdeep",
        STEP | {"total_steps": 1, "next_step_required": False, "model": "moonshot-v1-32k"} | LACKED,
    ),
    *old_calls(
        "pal",
        "clink",
        {"prompt": "Summarize the shelf.", "cli_name": "gemini"},
        role=Each(["default", "planner", "codereviewer"]),
        absolute_file_paths=Noticed([FILE]),
        images=["{workspace}/dot.png"],
        continuation_id="{conversation}",
    ),
    *step_calls("thinkdeep", STEP, **REPORT, **ASKING, problem_context="A library", focus_areas=["cost"]),
    *step_calls(
        "planner",
        without(STEP, "findings"),
        use_assistant_model=False,
        is_step_revision=Noticed(True),
        revises_step_number=1,
        is_branch_point=Noticed(True),
        branch_from_step=1,
        branch_id="microservices",
        more_steps_needed=Noticed(True),
    ),
    *step_calls(
        "consensus",
        without(STEP, "model") | {"step": Noticed("Is the shelf a good name?"), "models": VIEWS},
        relevant_files=Noticed([FILE]),
        images=[IMAGE],
        use_assistant_model=Noticed(True),
        current_model_index=Noticed(0),
        model_responses=Noticed([{"model": "glm-4.6", "verdict": "Yes."}]),
    ),
    *step_calls(
        "codereview",
        STEP | {"relevant_files": [FILE]},
        **without(REPORT, "relevant_files"),
        **ASKING,
        review_validation_type=VALIDATION,
        review_type=Each(["full", "security", "performance", "quick"]),
        focus_on="locking",
        standards="PEP 8",
        severity_filter=SEVERITIES,
    ),
    *step_calls(
        "precommit",
        STEP | {"path": "{workspace}"},
        **REPORT,
        **ASKING,
        precommit_type=VALIDATION,
        compare_to="main",
        include_staged=True,
        include_unstaged=False,
        focus_on="locking",
        severity_filter=SEVERITIES,
    ),
    *step_calls("debug", STEP, **REPORT, **ASKING),
    *step_calls(
        "secaudit",
        STEP,
        **REPORT,
        **ASKING,
        security_scope="public web API",
        threat_level=Each(["low", "medium", "high", "critical"]),
        compliance_requirements=["PCI DSS"],
        audit_focus=Each(["owasp", "compliance", "infrastructure", "dependencies", "comprehensive"]),
        severity_filter=SEVERITIES,
    ),
    *step_calls(
        "docgen",
        without(STEP, "model")
        | {
            "document_complexity": True,
            "document_flow": True,
            "update_existing": True,
            "comments_on_complex_logic": True,
            "num_files_documented": Noticed(0),
            "total_files_to_document": Noticed(2),
        },
        **{
            name: REPORT[name] for name in ("relevant_files", "relevant_context", "issues_found", "use_assistant_model")
        },
    ),
    *step_calls(
        "analyze",
        STEP | {"relevant_files": [FILE]},
        **without(REPORT, "relevant_files", "hypothesis"),
        **ASKING,
        analysis_type=Each(["architecture", "performance", "security", "quality", "general"]),
        output_format=Each(["summary", "detailed", "actionable"]),
    ),
    *step_calls(
        "refactor",
        STEP | {"relevant_files": [FILE]},
        **without(REPORT, "relevant_files", "confidence"),
        **ASKING,
        confidence=Each(["exploring", Noticed("incomplete"), Noticed("partial"), Noticed("complete")]),
        refactor_type=Each(["codesmells", "decompose", "modernize", "organization"]),
        focus_areas=["testability"],
        style_guide_examples=[FILE],
    ),
    *step_calls(
        "tracer",
        STEP | {"trace_mode": "precision", "target_description": "Shelf.add: how it is reached"},
        **without(REPORT, "issues_found", "hypothesis"),
        images=[IMAGE],
        trace_mode=Each(["precision", "dependencies", "ask"]),
    ),
    *step_calls("testgen", STEP | {"relevant_files": [FILE]}, **without(REPORT, "relevant_files"), **ASKING),
    *old_calls("pal", "challenge", {"prompt": "A lock is always cheaper than a queue."}),
    *old_calls("pal", "apilookup", {"prompt": "The latest Stripe Python SDK and its breaking changes"}),
    *old_calls("pal", "listmodels"),
    *old_calls("pal", "version"),
)
