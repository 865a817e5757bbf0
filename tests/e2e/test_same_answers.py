"""The same calls get the same results and errors over each transport."""

import json
import re
from typing import Any

import pytest

Call = tuple[str, dict[str, Any]]
STEPS = [
    {"id": "one", "tool_name": "echo", "args": {"value": {"rows": [1, 2, 3]}}},
    {"id": "two", "tool_name": "echo", "args": {"text": "{{one.rows[0]}} of them"}},
]
GLM = {"model": "glm-4.6"}
KIMI = {"model": "kimi-k2.6"}

RESULTS: dict[str, Call] = {
    "a text": ("echo", {"text": "hi, ü \u2028 \U0001f642"}),
    "an object": ("echo", {"value": {"a": [1, None, 2.5], "result": {}}}),
    "a list": ("echo", {"value": [1, "2"]}),
    "a word": ("echo", {"value": "three"}),
    "nothing": ("echo", {"value": None}),
    "a picture": ("draws", {}),
    "a picture by another tool": ("execute_tool", {"tool_name": "draws", "args": {}}),
    "a picture in a program": ("execute_code", {"code": "return await bad_tools.draws()"}),
    "much": ("echo", {"value": ["x" * 100] * 1_000}),
    "the version": ("version", {}),
    "how to begin": ("00_INIT", {}),
    "found tools": ("search_tools", {"query": "give back a text as it came"}),
    "described tools": ("describe_tools", {"names": ["echo", "chat"]}),
    "stubs": ("read_stubs", {"names": ["tools.echo"]}),
    "a shaped result": (
        "execute_tool",
        {
            "tool_name": "echo",
            "args": {"value": [{"a": 1, "b": 2}] * 5},
            "options": {"select_fields": ["a"], "limit": 2},
        },
    ),
    "a batch": (
        "execute_batch",
        {"tool_name": "echo", "items": [{"text": "x"}, {"txet": "y"}], "options": {"result_mode": "detail"}},
    ),
    "a pipeline": ("execute_pipeline", {"steps": STEPS}),
    "a program": ("execute_code", {"code": "return [(await tools.echo(value=n)) for n in range(3)]"}),
    "GLM's words": ("chat", {"prompt": "Is it so?", **GLM}),
    "Kimi's words": ("chat", {"prompt": "Is it so?", "files": ["same.txt"], **KIMI}),
    "a challenge": ("challenge", {"prompt": "It is so.", **GLM}),
    "many models": ("consensus", {"prompt": "Ship?", "models": ["kimi-k2.6", "glm-4.6"], "synthesis_model": "glm-4.6"}),
    "a step of work": ("planner", {"step": "Begin.", "findings": "None.", "next_step_required": True}),
    "what GLM would be sent": ("glm_payload_preview", {"prompt": "Hello.", **GLM}),
    "reports": ("reports", {}),
}
ERRORS: dict[str, Call] = {
    "a pipeline that cannot be": ("execute_pipeline", {"steps": [*STEPS, {"id": "two", "tool_name": "nope"}]}),
    "a program with a mistake": ("execute_code", {"code": "return 1 / 0"}),
    "a vendor that refuses": ("chat", {"prompt": "[[sim:status=400]]", **KIMI}),
    "a tool that raises": ("bad_raises", {}),
    "a tool that exits": ("bad_exits", {}),
    "a tool that returns no JSON": ("bad_returns", {}),
    "an error without words": ("bad_error", {}),
    "reports that are none": ("bad_streams", {"kind": "progress"}),
    "a tool that is not there": ("ehco", {}),
    "nothing that is needed": ("echo", {}),
    "another type": ("echo", {"text": 5}),
    "another argument": ("echo", {"txet": "x"}),
    "another model": ("chat", {"prompt": "x", "model": "kimi-k9"}),
    "a file of the machine": ("chat", {"prompt": "x", "files": ["/etc/passwd"]}),
    "a result that is not there": ("read_result", {"handle": "nothing-1"}),
    "a call that is not there": ("call_result", {"call_id": "nothing"}),
}
OUT_OF_TIME: dict[str, Call] = {
    "a tool that hangs": ("bad_hangs", {}),
    "a write that hangs": ("write_hangs", {}),
    "a vendor that hangs": ("chat", {"prompt": "[[sim:hang]]", **GLM}),
}
OF_A_CALL = re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{12}-[0-9a-f]+\b")
"""Ids, which differ between any two calls. Fields with the suffixes in ``TIMES`` differ too."""
TIMES = ("ms", "_at")
AT_ONCE = 10


@pytest.mark.parametrize("transport", ["mcp over http", "mcp over stdio"])
async def test_mcp_and_websocket_answers_are_equal(daemon: Any, by: Any, transport: str) -> None:
    """Texts, data, errors and metadata of all kinds of calls, some concurrent."""
    (daemon.state.parent / "same.txt").write_text("the same to all\n")
    calls = RESULTS | ERRORS
    reported = []
    for route in ("websocket", transport):
        async with by(route, daemon) as caller:
            answers = []
            for place in range(0, len(calls), AT_ONCE):
                answers += await caller.answers(*list(calls.values())[place : place + AT_ONCE])
            answers += await caller.answers(*OUT_OF_TIME.values(), timeout_ms=500)
        reported.append({name: said(frame) for name, frame in zip(calls | OUT_OF_TIME, answers, strict=True)})
    assert reported[1] == reported[0]
    assert {name for name, frame in reported[1].items() if frame["error"] is None} == RESULTS.keys()
    assert reported[1]["a picture"]["outputs"][1:] == [{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]


@pytest.mark.parametrize("transport", ["mcp over http", "mcp over stdio"])
async def test_a_hundred_concurrent_calls_of_which_thirty_fail(daemon: Any, by: Any, transport: str) -> None:
    """Each of a hundred calls gets its answer, although a session has fewer calls in flight and thirty calls fail."""
    broken = ("bad_raises", "bad_exits", "bad_returns")
    calls: list[Call] = [
        (broken[number % 10], {}) if number % 10 < 3 else ("echo", {"value": number, "delay_ms": 200})
        for number in range(100)
    ]
    async with by(transport, daemon) as caller:
        answers = await caller.answers(*calls)
    for number, answer in enumerate(answers):
        if number % 10 < 3:
            assert answer["error"]["code"] == "TOOL_EXECUTION_ERROR"
            assert broken[number % 10] in answer["error"]["message"]
        else:
            assert (answer["error"], answer["structured"]) == (None, number)


def said(frame: dict[str, Any]) -> Any:
    """The parts of an answer that do not differ between calls."""
    return plain({name: frame.get(name) for name in ("outputs", "structured", "error", "metadata")})


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if not name.endswith(TIMES) and name != "timings"}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and value.startswith("{"):  # data as text
        return plain(json.loads(value))
    return OF_A_CALL.sub("#", value) if isinstance(value, str) else value
