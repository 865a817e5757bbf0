"""The calls of EX-AI-MCP-Server's clients, from its published schemas."""

from typing import Any, Final

from tests.compat.old_calls import Each, Noticed, OldCall, Refused, old_call, old_calls

FILE: Final = "{workspace}/shelf.py"
DOT: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
"""A PNG image of one pixel, as base64."""
IMAGE: Final = f"data:image/png;base64,{DOT}"
MODEL: Final = "glm-4.5-flash"
MODELS: Final = (
    "auto",
    "kimi-k2",
    "kimi-k2-0905",
    "kimi-k2-0905-preview",
    "kimi-k2-0711",
    "kimi-k2-0711-preview",
    "kimi-k2-turbo",
    "kimi-k2-turbo-preview",
    "kimi-latest",
    "kimi-latest-8k",
    "kimi-latest-32k",
    "kimi-latest-128k",
    "kimi-thinking",
    "kimi-thinking-preview",
    "moonshot-v1-8k",
    "moonshot-v1-32k",
    "moonshot-v1-128k",
    "moonshot-v1-8k-vision-preview",
    "moonshot-v1-32k-vision-preview",
    "moonshot-v1-128k-vision-preview",
    "glm-4.6",
    "glm-4.5",
    "glm-4.5-flash",
    "glm-4.5-air",
    "glm-4.5-x",
    "glm-4.5v",
)
CONFIDENCES: Final = ("exploring", "low", "medium", "high", "very_high", "almost_certain", "certain")
DEPTHS: Final = ("minimal", "low", "medium", "high", "max")
CLIENT_ID: Final = "my-review-7"
"""A conversation's id that the client made itself."""

STEP: Final[dict[str, Any]] = {
    "step": "Examine the shelf.",
    "step_number": 1,
    "total_steps": 2,
    "next_step_required": True,
    "findings": "Nothing yet.",
    "model": MODEL,
}
"""The first step of two: no model is asked."""
LAST: Final[dict[str, Any]] = STEP | {"total_steps": 1, "next_step_required": False}

REPORT: Final[dict[str, Any]] = {
    "files_checked": [FILE],
    "relevant_files": [FILE],
    "relevant_context": ["Shelf.add", "Shelf.find"],
    "issues_found": [{"severity": "high", "description": "The lock is not released.", "category": "concurrency"}],
    "confidence": Each(CONFIDENCES),
    "hypothesis": "The lock is held twice.",
    "backtrack_from_step": 1,
    "use_assistant_model": False,
}
"""What a step reports."""
ASKING: Final[dict[str, Any]] = {
    "temperature": 0.2,
    "thinking_mode": Each([Noticed(depth) for depth in DEPTHS]),
    "use_websearch": Noticed(True),
    "images": [IMAGE],
}
"""How the model is asked."""
CONTINUED: Final[dict[str, Any]] = {"continuation_id": Each(["{conversation}", Noticed(CLIENT_ID)])}


def without(arguments: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in names}


def step_calls(tool: str, base: dict[str, Any], **arguments: Any) -> tuple[OldCall, ...]:
    """The calls of a tool that works in steps: first steps with one argument each, a later one, and the last one."""
    later = base | {"step_number": 2, "total_steps": 3}
    return (
        *old_calls("exai", tool, base, **CONTINUED, **arguments),
        old_call(f"exai {tool} a later step without continuation_id", tool, later, "continuation_id"),
        old_call(f"exai {tool} the last step", tool, base | {"total_steps": 1, "next_step_required": False}),
    )


UNUSED: Final[dict[str, Any]] = {
    "temperature": Noticed(0.5),
    "thinking_mode": Noticed("low"),
    "use_websearch": Noticed(True),
    "continuation_id": Noticed(CLIENT_ID),
    "images": Noticed([IMAGE]),
    "files": Noticed([FILE]),
    "model": Noticed(MODEL),
}
"""What the published schemas of tools list that ask no model."""
CHOICES: Final = ("auto", "none", "required", {"type": "function", "function": {"name": "look_up"}})
PAYLOAD: Final[dict[str, Any]] = {"prompt": "Hello."}
FUNCTION: Final = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
DOCGEN: Final[dict[str, Any]] = without(STEP, "model") | {
    "document_complexity": True,
    "document_flow": True,
    "update_existing": True,
    "comments_on_complex_logic": True,
    "num_files_documented": Noticed(0),
    "total_files_to_document": Noticed(2),
}
OPTIONS_OF_OTHER_MODELS: Final[dict[str, Any]] = {
    "model": "kimi-k2-0905-preview",
    "thinking_mode": Noticed("high"),
    "use_websearch": Noticed(True),
    "temperature": 0.3,
}
"""Kimi's default model of the predecessor neither thinks nor searches the web; these options had no effect."""
IGNORED: Final = ("thinking is ignored", "web_search is ignored")
VIEWS: Final = [{"model": "glm-4.5-flash", "stance": "for"}, {"model": "kimi-k2-0905-preview", "stance": "against"}]

CALLS: Final[tuple[OldCall, ...]] = (
    *old_calls(
        "exai",
        "chat",
        {"prompt": "What does the shelf do?"},
        files=Each([[FILE], Refused(["/mnt/project/EX-AI-MCP-Server/README.md"], "PERMISSION_DENIED")]),
        images=[IMAGE],
        model=Each(MODELS),
        temperature=Each([0.5, Noticed("0.5")]),
        thinking_mode=Each([Noticed(depth) for depth in DEPTHS]),
        kimi_thinking=Noticed("enabled"),
        use_websearch=Each([Noticed(True), Noticed(False), Noticed("true")]),
        stream=Noticed(True),
        continuation_id=Each(["{conversation}", Noticed(CLIENT_ID)]),
    ),
    old_call(
        "exai chat options that the model lacks",
        "chat",
        {"prompt": "Why?", "images": Noticed([IMAGE]), **OPTIONS_OF_OTHER_MODELS},
        *IGNORED,
        "images are ignored",
    ),
    *step_calls(
        "analyze",
        STEP,
        **without(REPORT, "hypothesis"),
        **ASKING,
        analysis_type=Each(["architecture", "performance", "security", "quality", "general"]),
        output_format=Each(["summary", "detailed", "actionable"]),
    ),
    *step_calls(
        "codereview",
        STEP | {"relevant_files": [FILE]},
        **without(REPORT, "relevant_files"),
        **ASKING,
        review_type=Each(["full", "security", "performance", "quick"]),
        focus_on="locking",
        standards="PEP 8",
        severity_filter=Each(["critical", "high", "medium", "low", "all"]),
    ),
    *step_calls("debug", STEP, **REPORT, **ASKING),
    old_call(
        "exai debug the last step with options that the model lacks",
        "debug",
        LAST | OPTIONS_OF_OTHER_MODELS | {"images": Noticed([IMAGE])},
        *IGNORED,
        "images are ignored",
    ),
    *step_calls(
        "refactor",
        STEP,
        **REPORT,
        **ASKING,
        refactor_type=Each(["codesmells", "decompose", "modernize", "organization"]),
        focus_areas=["testability"],
        style_guide_examples=[FILE],
    ),
    *step_calls(
        "secaudit",
        STEP,
        **REPORT,
        **ASKING,
        security_scope="public web API",
        threat_level=Each(["low", "medium", "high", "critical"]),
        compliance_requirements=["PCI DSS"],
        audit_focus=Each(["owasp", "compliance", "infrastructure", "dependencies", "comprehensive"]),
        severity_filter=Each(["critical", "high", "medium", "low", "all"]),
    ),
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
        "tracer",
        STEP | {"trace_mode": "precision", "target_description": "Shelf.add: how it is reached"},
        **without(REPORT, "issues_found", "hypothesis", "backtrack_from_step"),
        images=[IMAGE],
        trace_mode=Each(["precision", "dependencies", "ask"]),
    ),
    *step_calls("testgen", STEP | {"relevant_files": [FILE]}, **without(REPORT, "relevant_files"), **ASKING),
    *step_calls(
        "consensus",
        without(STEP, "model") | {"step": Noticed("Is the shelf a good name?"), "models": VIEWS},
        model=Noticed(MODEL),
        relevant_files=Noticed([FILE]),
        images=[IMAGE],
        use_assistant_model=Noticed(True),
        current_model_index=Noticed(0),
        model_responses=Noticed([{"model": "glm-4.5-flash", "verdict": "Yes."}]),
        models=Each(
            [[{"model": MODEL, "stance": "neutral"}], [VIEWS[0] | {"stance_prompt": "Argue for it."}, VIEWS[1]]]
        ),
    ),
    *step_calls("thinkdeep", STEP, **REPORT, **ASKING, problem_context="A library", focus_areas=["cost"]),
    *step_calls(
        "docgen",
        DOCGEN,
        **{
            name: REPORT[name] for name in ("relevant_files", "relevant_context", "issues_found", "use_assistant_model")
        },
    ),
    *step_calls(
        "precommit",
        STEP | {"path": "{workspace}"},
        **REPORT,
        **ASKING,
        compare_to="main",
        include_staged=True,
        include_unstaged=False,
        focus_on="locking",
        severity_filter=Each(["critical", "high", "medium", "low", "all"]),
    ),
    *old_calls("exai", "challenge", {"prompt": "A lock is always cheaper than a queue."}),
    *old_calls("exai", "version", model=Noticed(MODEL)),
    *old_calls("exai", "listmodels", model=Noticed(MODEL)),
    *old_calls("exai", "self-check", log_lines=Noticed(40)),
    *old_calls(
        "exai",
        "test_echo",
        {"prompt": Noticed("Hello")},
        delay_ms=1,
        include_metadata=Each([Noticed(True), Noticed(False)]),
        **UNUSED,
    ),
    *old_calls(
        "exai",
        "activity",
        lines=Noticed(50),
        filter=Noticed("chat"),
        source=Each([Noticed("auto"), Noticed("activity"), Noticed("server")]),
        since=Noticed("2026-01-01T00:00:00"),
        until=Noticed("2036-01-01T00:00:00"),
        structured=Noticed(True),
        **UNUSED,
    ),
    *old_calls("exai", "health", tail_lines=Noticed(50)),
    *old_calls(
        "exai",
        "status",
        tail_lines=Noticed(30),
        include_tools=True,
        doctor=Noticed(True),
        probe=Noticed(True),
    ),
    *old_calls(
        "exai",
        "provider_capabilities",
        include_tools=Noticed(True),
        show_advanced=Noticed(True),
        invalidate_cache=Noticed(True),
    ),
    *old_calls("exai", "toolcall_log_tail", n=Noticed(20), path=Noticed("/app/logs/toolcalls.jsonl")),
    *old_calls(
        "exai",
        "smart_file_query",
        {"file_path": FILE, "question": "What does it do?"},
        provider=Each(["auto", "kimi", "glm"]),
        model=Each(["auto", "kimi-k2-0905-preview"]),
    ),
    *old_calls("exai", "smart_file_download", {"file_id": "{file_id}"}, destination=Noticed("/mnt/project/downloads/")),
    *old_calls(
        "exai",
        "kimi_upload_files",
        {"files": ["{workspace}/notes.txt"]},
        purpose=Each(["file-extract", Noticed("assistants")]),
    ),
    *old_calls(
        "exai",
        "kimi_chat_with_files",
        {"prompt": "What was decided?", "file_ids": ["{file_id}"]},
        model="kimi-k2-0905-preview",
        temperature=0.3,
    ),
    *old_calls(
        "exai",
        "kimi_manage_files",
        {"operation": "list"},
        limit=10,
        dry_run=True,
        operation=Each(["list", "cleanup_all", Noticed("cleanup_orphaned"), Noticed("cleanup_expired")]),
    ),
    OldCall(
        "exai kimi_manage_files file_id", "kimi_manage_files", {"operation": "delete", "file_id": "{spare_file_id}"}
    ),
    *old_calls(
        "exai",
        "kimi_intent_analysis",
        {"prompt": "Why does the shelf refuse books?"},
        context="A library",
        use_websearch=Noticed(True),
    ),
    *old_calls(
        "exai",
        "kimi_capture_headers",
        {"messages": [{"role": "user", "content": "Hello"}]},
        model="kimi-k2-0711-preview",
        temperature=0.6,
        session_id=Noticed("s-1"),
        call_key=Noticed("key-1"),
        tool_name=Noticed("kimi_capture_headers"),
    ),
    *old_calls(
        "exai",
        "kimi_chat_with_tools",
        {"messages": [{"role": "user", "content": "Hello"}]},
        messages=Each(["Hello", ["Summarize the notes."], [{"role": "user", "content": "Hello"}, "And then?"]]),
        model=Each(["auto", "kimi-k2-0711-preview", Refused(MODEL, "VALIDATION_ERROR")]),
        temperature=0.6,
        stream=Noticed(False),
        use_websearch=Noticed(True),
    ),
    old_call(
        "exai kimi_chat_with_tools use_websearch with a model that lacks it",
        "kimi_chat_with_tools",
        {"messages": "Look it up.", "model": "kimi-k2-0711-preview", "use_websearch": Noticed(True)},
        "web_search is ignored",
    ),
    *old_calls(
        "exai",
        "kimi_chat_with_tools",
        {"messages": "Look it up.", "tools": [FUNCTION]},
        tool_choice=Each(CHOICES),
    )[1:],
    *old_calls(
        "exai",
        "glm_upload_file",
        {"file": "{workspace}/notes.txt"},
        purpose="agent",
        file=Refused(FILE, "VALIDATION_ERROR"),
    ),
    *old_calls(
        "exai",
        "glm_web_search",
        {"search_query": "opening hours of public libraries"},
        count=Each([3, Noticed("3"), Noticed(60)]),
        search_engine=Each(["search-prime", "search_pro"]),
        search_domain_filter=Each(["example.org", None]),
        search_recency_filter=Each(["oneDay", "oneWeek", "oneMonth", "oneYear", "all"]),
        request_id=Each(["r-1", None]),
        user_id=Each(["user-1", None]),
    ),
    *old_calls(
        "exai",
        "glm_payload_preview",
        PAYLOAD,
        model=MODEL,
        temperature=0.3,
        system_prompt=Each([Noticed("Be brief."), Noticed(None)]),
        use_websearch=Noticed(True),
        tools=[FUNCTION],
        tool_choice=Each(
            ["auto", None, Refused({"type": "function", "function": {"name": "look_up"}}, "VALIDATION_ERROR")]
        ),
    ),
)
