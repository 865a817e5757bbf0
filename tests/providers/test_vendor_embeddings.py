"""Embeddings of vendors: what is refused, what is read, and GLM's SDKs."""

import base64
import json
import math
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.providers.recorded_vendor import RecordedVendor, open_recorded, response_head
from toold.protocol.error_codes import InvalidArgumentsError, ProviderError
from toold.protocol.tool_call import Cost, Usage
from toold.providers import COMPATIBLE, DIALECTS, EmbeddingRequest, ModelCatalog, OpenProvider, preset_models
from toold.providers.embedding import embedding_body, read_embeddings
from toold.providers.response_values import InvalidResponseError

if TYPE_CHECKING:
    from tests.providers.conftest import Bench

UNKNOWN = OpenProvider("work").model("m")
SMALL = preset_models("openai")["text-embedding-3-small"]


@pytest.mark.parametrize(
    ("request_", "preset", "field", "says"),
    [
        (EmbeddingRequest(ModelCatalog.load().resolve("glm-4.6"), ("a",)), "openai", "model", "not embeddings"),
        (EmbeddingRequest(UNKNOWN, ((1, 2),)), "ollama", "input", "send texts"),
        (EmbeddingRequest(SMALL, ((1,), (1,) * 8_193)), "openai", "input.1", "has 8,193 tokens"),
        (EmbeddingRequest(SMALL, ("word " * 20_000,)), "openai", "input.0", "takes 8,192 per text"),
    ],
)
def test_what_cannot_be_embedded_is_refused(request_: EmbeddingRequest, preset: str, field: str, says: str) -> None:
    """The error names the field; nothing is sent."""
    with pytest.raises(InvalidArgumentsError, match=says) as error:
        embedding_body(request_, DIALECTS[preset], preset)
    assert list((error.value.details or {})["fields"]) == [field]


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "not an object"),
        ({"data": [{"embedding": [1]}]}, "1 embeddings for 2 inputs"),
        ({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}, "indexes"),
        ({"data": [{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}]}, "indexes"),
        ({"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}, "differ in length"),
        ({"data": [{"embedding": [1]}, {"embedding": []}]}, "not a list of numbers"),
        ({"data": [{"embedding": [1]}, {"embedding": [None]}]}, "not numbers"),
        ({"data": [{"embedding": [1]}, {"embedding": [math.nan]}]}, "not numbers"),
        ({"data": [{"embedding": [1]}, {"embedding": [10**400]}]}, "not numbers"),
        ({"data": [{"embedding": [1]}, {"embedding": packed(math.inf)}]}, "not numbers"),
        ({"data": [{"embedding": [1]}, {"embedding": "AAAA"}]}, "32-bit"),
        ({"data": [{"embedding": [1]}, {"embedding": "?"}]}, "not base64"),
    ],
)
def test_answers_that_are_no_embeddings_are_refused(document: Any, says: str) -> None:
    """Each input gets a vector of numbers, of the same length, or the whole answer is an error."""
    with pytest.raises(InvalidResponseError, match=says):
        read_embeddings(document, EmbeddingRequest(UNKNOWN, ("a", "b")), COMPATIBLE, {})


def test_either_encoding_is_converted_into_the_other() -> None:
    """The numbers are the same; a missing usage is unknown."""
    floats = {"data": [{"embedding": [0.5, -2]}]}
    as_text = read_embeddings(floats, EmbeddingRequest(UNKNOWN, ("a",), encoding="base64"), COMPATIBLE, {})
    assert as_text.vectors == (packed(0.5, -2),)
    as_numbers = read_embeddings(
        {"data": [{"embedding": packed(0.5, -2)}]}, EmbeddingRequest(UNKNOWN, ("a",)), COMPATIBLE, {}
    )
    assert as_numbers.vectors == ([0.5, -2],)
    assert (as_numbers.usage, as_numbers.cost) == (None, None)


async def test_a_long_answer_is_read_and_a_page_or_an_error_is_refused() -> None:
    """Long answers are read in a thread; neither a web page nor an error with HTTP 200 is an answer."""
    async with RecordedVendor() as vendor:
        provider = open_recorded("vllm", "http", vendor.base_url)
        request = EmbeddingRequest(UNKNOWN, ("a",) * 40)
        entries = [{"index": at, "embedding": [at / 3] * 512} for at in range(40)]
        vendor.record({"body": {"data": entries, "model": "m"}})
        answer = await provider.embed(request, timeout_s=30)
        assert (answer.vectors[7], answer.model) == ([7 / 3] * 512, "work/m")
        for body, media_type, says in (
            (b"<html>", "text/html", "web page"),
            (json.dumps({"error": {"message": "x" * 40_000}}).encode(), "application/json", "interrupted"),
            (b"[" * 40_000, "application/json", "not JSON"),
        ):
            vendor.pieces = [response_head(200, media_type, {}), body]
            with pytest.raises(ProviderError, match=says):
                await provider.embed(request, timeout_s=30)
        await provider.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("sdk", ["zhipuai", "zai", "http"])
async def test_glm_makes_embeddings_over_every_transport(bench: "Bench", sdk: str) -> None:
    """The vendor's vectors arrive with usage and cost; lists of tokens are refused before sending."""
    provider = bench.open("glm", sdk)
    request = EmbeddingRequest(bench.model("glm", "vectors"), ("Hello.", "Hello."), dimensions=8)
    answer = await provider.embed(request, timeout_s=30)
    assert (len(answer.vectors), answer.dimensions, answer.simulated) == (2, 8, True)
    assert answer.vectors[0] == answer.vectors[1]
    assert (answer.usage, answer.cost) == (Usage(4, 0), Cost(2e-06, "CNY"))
    with pytest.raises(InvalidArgumentsError, match="no embeddings of tokens"):
        await provider.embed(replace(request, inputs=((1,),)), timeout_s=30)
