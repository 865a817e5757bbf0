"""What tools cost a model by each presentation, by the local estimate; ``make bench-tokens`` has a tokenizer."""

import ast
import json
import re

import pytest
from benchmarks.tokens.synthetic import SIZES, synthetic_tools
from benchmarks.tokens.task import AIMS, WAYS, definition, texts
from toold.tools import estimate_tokens, load_registry, module_for


@pytest.mark.parametrize("count", AIMS)
async def test_code_mode_saves_what_it_is_there_for(count: int) -> None:
    """The whole cost of finding and using three tools, beside a listing of all."""
    classic, code = (await texts("classic", count), await texts("code", count))
    saved = 1 - estimate_tokens(code.listing + code.use) / estimate_tokens(classic.listing + classic.use)
    assert saved >= AIMS[count]


async def test_the_listing_of_code_does_not_grow_with_the_tools() -> None:
    """And that of ``hybrid`` no more; each lists less than the one before it."""
    listed = {(count, way): estimate_tokens((await texts(way, count)).listing) for count in SIZES for way in WAYS}
    assert listed[250, "code"] == pytest.approx(listed[30, "code"], rel=0.02)
    assert listed[250, "hybrid"] == pytest.approx(listed[30, "hybrid"], rel=0.02)
    for count in SIZES:
        assert listed[count, "classic"] > listed[count, "hybrid"] > listed[count, "code"]


@pytest.mark.parametrize("count", SIZES)
async def test_the_task_can_be_done_as_it_is_counted(count: int) -> None:
    """The searches find the three tools among all, and the program calls them by the names that the stubs have."""
    use = (await texts("code", count)).use
    found = {row["name"] for answer in use[1:6:2] for row in json.loads(answer)}
    program = json.loads(use[-2])["arguments"]["code"]
    stubs = module_for(synthetic_tools(count))
    called = {stubs.tool_name(*name) for name in re.findall(r"await (\w+)\.(\w+)\(", program)}
    assert called == set(json.loads(use[6])["arguments"]["names"])
    assert called <= found
    assert {call["tool"] for call in json.loads(use[-1])["calls"]} == called
    ast.parse(f"async def main():\n{program}".replace("\n", "\n    "))


def test_the_synthetic_tools_are_no_larger_than_real_ones() -> None:
    """In the listing each takes no more than the daemon's own do on average."""
    own, made = load_registry().tools, synthetic_tools(max(SIZES))
    of_own = estimate_tokens(definition(tool.info) for tool in own) / len(own)
    of_made = estimate_tokens(definition(tool.info) for tool in made) / len(made)
    assert 0.5 * of_own < of_made < of_own
