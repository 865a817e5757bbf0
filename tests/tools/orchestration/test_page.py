"""The examples in docs/composition.md match the answers of the daemon."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from toold.protocol.error_codes import CallError
from toold.tools.orchestration.saved_pipelines import pipelines_in

PAGE = (Path(__file__).parents[3] / "docs/composition.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r"`(\w+)` with\n\n```json\n(.+?)```\n\n(answers|fails with)\n\n```json\n(.+?)```", PAGE, re.DOTALL
)
NAMES = [f"{tool}-{number}" for number, (tool, *_) in enumerate(EXAMPLES)]


def shows(shown: Any, answered: Any, place: str = "") -> None:
    """Compare each shown part with the answer; ``…`` stands for any value or for the rest of a text."""
    if isinstance(shown, Mapping):
        assert isinstance(answered, Mapping), place
        for name, part in shown.items():
            assert name in answered, f"{place}.{name}"
            shows(part, answered[name], f"{place}.{name}")
    elif isinstance(shown, list):
        assert isinstance(answered, list), place
        assert len(shown) == len(answered), place
        for index, part in enumerate(shown):
            shows(part, answered[index], f"{place}[{index}]")
    elif isinstance(shown, str) and shown.endswith("…"):
        assert shown == "…" or str(answered).startswith(shown[:-1]), place
    else:
        assert answered == shown, place


@pytest.mark.parametrize(("tool", "arguments", "ends", "shown"), EXAMPLES, ids=NAMES)
async def test_an_example_matches_the_answer(
    serve: Any, workspace: Path, tool: str, arguments: str, ends: str, shown: str
) -> None:
    """Each example runs on a real daemon."""
    served = await serve(workspace)
    if ends == "answers":
        answer = (await served.client.call(tool, json.loads(arguments))).structured
    else:
        with pytest.raises(CallError) as raised:
            await served.client.call(tool, json.loads(arguments))
        answer = msgspec.to_builtins(raised.value.to_tool_error())
    shows(json.loads(shown), answer)


def test_every_json_block_is_an_example() -> None:
    """Every JSON block on the page is the arguments or the answer of an example."""
    assert len(EXAMPLES) * 2 == PAGE.count("```json")


async def test_the_saved_pipeline_on_the_page_is_a_tool(serve: Any, workspace: Path, tmp_path: Path) -> None:
    """A daemon loads the pipeline from its directory and runs it."""
    directory = tmp_path / "pipelines"
    directory.mkdir()
    (text,) = re.findall(r"```toml\n(.+?)```", PAGE, re.DOTALL)
    (directory / "describe_model.toml").write_text(text)
    assert pipelines_in(directory)[1] == []
    served = await serve(workspace, TOOLD_PIPELINE_DIR=str(directory))
    answer = await served.client.call("describe_model", {"model": "kimi"})
    assert answer.structured["success"] is True
    assert answer.metadata.provider_calls == 1
