"""The vendors' response formats, as documented."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.providers.simulator import vendor_responses
from toold.providers.simulator.simulated_answer import SimulatedReply

VENDORS: list[str] = ["kimi", "glm"]
CALLS = (("echo", '{"text": "hi"}'),)


def reply(text: str = "Two words", reasoning: str = "", calls: Any = (), finish: str = "stop") -> SimulatedReply:
    return SimulatedReply(
        text, reasoning, calls, finish, input_tokens=9, cached_tokens=4, output_tokens=5, reasoning_tokens=2
    )


@pytest.mark.parametrize("vendor", VENDORS)
def test_complete_answer_has_the_vendors_format(vendor: str) -> None:
    """An answer has a message with reasoning and tool calls, a finish reason, and usage with details."""
    body = vendor_responses.completion_body(vendor, "sim-1", "m", reply("", "Hm.", CALLS, "tool_calls"))
    assert body["choices"] == [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {
                        "id": "call_sim-1_0",
                        "type": "function",
                        "function": {"name": "echo", "arguments": '{"text": "hi"}'},
                    }
                ],
            },
        }
    ]
    assert body["usage"] == {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert ("object" in body) is (vendor == "kimi")
    assert ("request_id" in body) is (vendor == "glm")


def test_streamed_usage_is_where_each_vendor_puts_it() -> None:
    """GLM puts usage into the last chunk. Kimi puts it into the last choice, and on request into a separate chunk."""
    glm = list(vendor_responses.chunk_bodies("glm", "sim-1", "m", reply(), usage_asked=False))
    assert glm[-1]["usage"]["total_tokens"] == 14
    kimi = list(vendor_responses.chunk_bodies("kimi", "sim-1", "m", reply(), usage_asked=False))
    assert kimi[-1]["choices"][0]["usage"]["total_tokens"] == 14
    request = list(vendor_responses.chunk_bodies("kimi", "sim-1", "m", reply(), usage_asked=True))
    assert request[:-1] == kimi
    assert (request[-1]["choices"], request[-1]["usage"]["total_tokens"]) == ([], 14)


@given(st.sampled_from(VENDORS), st.text(max_size=80), st.text(max_size=80))
def test_chunks_contain_the_complete_answer(vendor: str, text: str, reasoning: str) -> None:
    """No character is lost or duplicated when an answer is split into chunks."""
    chunks = list(vendor_responses.chunk_bodies(vendor, "sim-1", "m", reply(text, reasoning), usage_asked=False))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content", "") for delta in deltas) == text
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == reasoning
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "stop"


def test_filtered_answer_has_the_vendors_finish_reason() -> None:
    """GLM uses ``sensitive`` where Kimi uses ``content_filter``."""
    assert vendor_responses.finish_reason("glm", "content_filter") == "sensitive"
    assert vendor_responses.finish_reason("kimi", "content_filter") == "content_filter"


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        (vendor_responses.failure("kimi", 429), 429, {"type": "rate_limit_reached_error"}),
        (vendor_responses.failure("glm", 429), 429, {"code": "1302"}),
        (vendor_responses.failure("glm", 400, "1214"), 400, {"code": "1214"}),
        (vendor_responses.failure("kimi", 502), 502, {"type": "server_error"}),
        (vendor_responses.unknown_model("kimi", "x"), 404, {"type": "resource_not_found_error"}),
        (vendor_responses.unknown_model("glm", "x"), 400, {"code": "1211"}),
        (vendor_responses.too_long("kimi", 10, 20), 400, {"type": "invalid_request_error"}),
        (vendor_responses.too_long("glm", 10, 20), 400, {"code": "1261"}),
        (vendor_responses.unsafe("kimi"), 400, {"type": "content_filter"}),
        (vendor_responses.unsafe("glm"), 400, {"code": "1301"}),
    ],
)
def test_errors_have_the_vendors_codes(
    fault: vendor_responses.VendorFailure, status: int, error: dict[str, str]
) -> None:
    """Kimi's errors have a type, GLM's a numeric code, and both a message."""
    vendor: str = "kimi" if "type" in error else "glm"
    assert fault.status == status
    assert vendor_responses.error_body(vendor, fault) == {"error": {**error, "message": fault.message}}
