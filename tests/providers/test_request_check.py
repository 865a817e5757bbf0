"""A request that the model does not support is refused before it is sent."""

from dataclasses import replace
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import (
    AttachedFile,
    CompletionRequest,
    FunctionTool,
    ImagePart,
    JsonFormat,
    Message,
    Model,
    ModelCatalog,
    TextPart,
    WebSearch,
)
from toold.providers.request_check import check

PLAIN: Model = replace(ModelCatalog.load().default("kimi"), id="m", inputs=("text",), thinking="none",
                       fixed_temperature=False, max_output=100, context_window=1000,
                       structured="none", efforts=())  # fmt: skip
SEARCHING = replace(PLAIN, web_search=True)
ASKED = (Message("user", "Hello."),)
PICTURE = (Message("user", (TextPart("What is it?"), ImagePart("data:image/png;base64,AA=="))),)
TOOL = FunctionTool("t", "Does.", {"type": "object"})


def request(model: Model = PLAIN, messages: tuple[Message, ...] = ASKED, **fields: Any) -> CompletionRequest:
    return CompletionRequest(model, messages, **fields)


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        (request(messages=()), "messages", "has no message"),
        (request(messages=PICTURE), "images", "m does not accept images"),
        (request(replace(PLAIN, tools=False), tools=(TOOL,)), "tools", "m cannot call tools"),
        (request(thinking=True), "thinking", "m cannot think"),
        (request(replace(PLAIN, thinking="always"), thinking=False), "thinking", "m always thinks"),
        (request(replace(PLAIN, fixed_temperature=True), temperature=1.0), "temperature", "m has a fixed temperature"),
        (request(temperature=1.5), "temperature", "from 0 to 1, not 1.5"),
        (request(temperature=-0.1), "temperature", "from 0 to 1, not -0.1"),
        (request(temperature=float("nan")), "temperature", "from 0 to 1, not nan"),
        (request(tools=(WebSearch(),)), "web_search", "m cannot search the web"),
        (request(SEARCHING, tools=(WebSearch(), WebSearch())), "web_search", "only once"),
        (request(SEARCHING, tools=(WebSearch(count=51),)), "count", "1 to 50 results, not 51"),
        (request(SEARCHING, tools=(WebSearch(count=0),)), "count", "1 to 50 results, not 0"),
        (request(response_format=JsonFormat()), "response_format", "m does not support JSON output"),
        (request(thinking="max"), "thinking", "m does not support the thinking depth 'max'"),
        (request(max_tokens=0), "max_tokens", "from 1 to 100, not 0"),
        (request(max_tokens=101), "max_tokens", "from 1 to 100, not 101"),
        (request(replace(PLAIN, max_output=None), max_tokens=1001), "max_tokens", "from 1 to 1000, not 1001"),
    ],
)
def test_unsupported_requests_are_refused(asked: CompletionRequest, field: str, words: str) -> None:
    """The error names the model, and the argument in ``details.fields``."""
    with pytest.raises(InvalidArgumentsError) as caught:
        check(asked)
    assert words in caught.value.message
    assert (caught.value.details or {})["fields"] == {field: caught.value.message}
    assert caught.value.executed == "no"


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request(messages=(), files=(AttachedFile("a", "b"),)),
        request(replace(PLAIN, inputs=("text", "image")), PICTURE),
        request(tools=(TOOL,), temperature=0.0, max_tokens=100),
        request(temperature=1.0, max_tokens=1),
        request(replace(PLAIN, thinking="always"), thinking=True),
        request(replace(PLAIN, thinking="switch"), thinking=False),
        request(thinking=False),
        request(SEARCHING, tools=(WebSearch(count=50), TOOL)),
        request(replace(SEARCHING, tools=False), tools=(WebSearch(),)),
        request(replace(PLAIN, structured="object"), response_format=JsonFormat({"type": "object"})),
    ],
)
def test_supported_requests_pass(asked: CompletionRequest) -> None:
    """Requests at the limits pass, and so does ``thinking=False`` for a model that cannot think."""
    check(asked)
