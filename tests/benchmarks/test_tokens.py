"""Token costs of the presentations, by the local estimate; ``make bench-tokens`` uses a tokenizer."""

import ast
import json
import re

import pytest
from benchmarks.tokens.synthetic import SIZES, synthetic_tools
from benchmarks.tokens.task import AIMS, WAYS, Texts, definition, texts
from toold.tools import Presentation, estimate_tokens, load_registry, module_for

_FEWEST, _MOST = min(SIZES), max(SIZES)
_texts: dict[tuple[Presentation, int], Texts] = {}


async def cached_texts(presentation: Presentation, count: int) -> Texts:
    """The texts of a presentation; they take a second with the largest catalog."""
    if (presentation, count) not in _texts:
        _texts[presentation, count] = await texts(presentation, count)
    return _texts[presentation, count]


@pytest.mark.parametrize("count", AIMS)
async def test_code_mode_reaches_its_aim(count: int) -> None:
    """Code mode saves the promised share of what finding and using three tools costs with a full listing."""
    classic, code = (await cached_texts("classic", count), await cached_texts("code", count))
    saved = 1 - estimate_tokens(code.listing + code.use) / estimate_tokens(classic.listing + classic.use)
    assert saved >= AIMS[count]


async def test_only_the_classic_listing_grows_with_the_tools() -> None:
    """``code`` and ``hybrid`` list the same number of tokens for any catalog; ``code`` lists the fewest."""
    tokens = {name: estimate_tokens((await cached_texts(name, _MOST)).listing) for name in WAYS}
    assert tokens["classic"] > tokens["hybrid"] > tokens["code"]
    for name in ("hybrid", "code"):
        small = (await cached_texts(name, _FEWEST)).listing
        assert tokens[name] == pytest.approx(estimate_tokens(small), rel=0.02)


async def test_the_counted_task_can_be_done() -> None:
    """In the largest catalog the searches find the three tools, and the program calls them by their stub names."""
    use = (await cached_texts("code", _MOST)).use
    names = {row["name"] for answer in use[1:6:2] for row in json.loads(answer)}
    program = json.loads(use[-2])["arguments"]["code"]
    stubs = module_for(synthetic_tools(_MOST))
    called = {stubs.tool_name(*name) for name in re.findall(r"await (\w+)\.(\w+)\(", program)}
    assert called == set(json.loads(use[6])["arguments"]["names"])
    assert called <= names
    assert {call["tool"] for call in json.loads(use[-1])["calls"]} == called
    ast.parse(f"async def main():\n{program}".replace("\n", "\n    "))


def test_the_synthetic_tools_are_no_larger_than_real_ones() -> None:
    """On average, the listing of a synthetic tool is between half and all of a built-in tool's."""
    own, result = load_registry().tools, synthetic_tools(_FEWEST)
    of_own = estimate_tokens(definition(tool.info) for tool in own) / len(own)
    of_made = estimate_tokens(definition(tool.info) for tool in result) / len(result)
    assert 0.5 * of_own < of_made < of_own
