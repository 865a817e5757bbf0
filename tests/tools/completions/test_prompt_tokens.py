"""The token estimate of prompts: its sum, and sampling of long texts."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from toold.providers import (
    ESTIMATE_ERROR,
    AttachedFile,
    CompletionRequest,
    FunctionTool,
    ImagePart,
    JsonFormat,
    Message,
    ModelCatalog,
    TextPart,
    ToolInvocation,
    estimate_text,
)
from toold.tools import estimate_request, estimate_tokens
from toold.tools.completions.prompt_tokens import COUNTED_CHARS, IMAGE_TOKENS, MESSAGE_TOKENS


@given(st.lists(st.text(max_size=100)))
def test_estimates_add_up(texts: list[str]) -> None:
    """Short texts are counted completely, including lone surrogates."""
    assert estimate_tokens([*texts, "\ud800"]) == sum(map(estimate_text, texts)) + estimate_text("\ud800")


def test_long_text_is_sampled() -> None:
    """The sampled estimate is within its error, even if one half is prose and the other half numbers."""
    text = "some words of prose, again and again. " * 3_000 + "1234567890 " * 10_000
    assert len(text) > 3 * COUNTED_CHARS
    whole = estimate_text(text)
    assert abs(estimate_tokens([text]) - whole) < ESTIMATE_ERROR / 3 * whole


def test_all_parts_of_a_request_count() -> None:
    """Messages, reasoning, tool calls, files, functions and a schema count. Images count at their flat rate."""
    model = ModelCatalog.load().default("kimi")
    bare = CompletionRequest(model, (Message("user", "one two three"),))
    assert estimate_request(bare) == 3 + MESSAGE_TOKENS
    words = "word " * 200
    image = Message("user", (TextPart("one two three"), ImagePart("data:image/png;base64," + "A" * 10_000)))
    called = Message("assistant", "", tool_calls=(ToolInvocation("1", "look", words),), reasoning=words)
    for more, least in (
        (replace(bare, messages=(image,)), IMAGE_TOKENS),
        (replace(bare, messages=(*bare.messages, called)), 400),
        (replace(bare, files=(AttachedFile("a", words),)), 200),
        (replace(bare, tools=(FunctionTool("look", words, {}),)), 200),
        (replace(bare, response_format=JsonFormat({"description": words})), 200),
    ):
        assert least <= estimate_request(more) - estimate_request(bare) <= least * 1.2 + 2 * MESSAGE_TOKENS
