"""The examples in docs/shaping.md match the implementation."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from toold.shaping import MISSING, LanguageError, compile_template, find_value, parse_filter, parse_path, plan
from toold.shaping.filter_matching import filter_rows

PAGE = (Path(__file__).parents[2] / "docs/shaping.md").read_text(encoding="utf-8")
RESULT: dict[str, Any] = json.loads(re.findall(r"```json\n(.+?)```", PAGE, re.DOTALL)[0])
CONTEXT = {
    "list": RESULT,
    "item": {"id": 9},
    "index": 0,
    "input": {"name": "Ann", "note": "{{item.id}}"},
}


def table(*heads: str) -> list[tuple[str, str]]:
    """The rows of the table with these two columns, without the backticks of cells that are code only."""
    _, _, rest = PAGE.partition(f"| {' | '.join(heads)} |\n|---|---|\n")
    lines = rest.partition("\n\n")[0].splitlines()
    cells = [re.split(r"(?<!\\) ?\| ?", line)[1:3] for line in lines]
    assert cells
    return [
        (one.strip("`").replace(r"\|", "|"), other.strip().removeprefix("`").removesuffix("`")) for one, other in cells
    ]


EXAMPLES = re.findall(r"```json\n(\{[^\n]+\})\n```\n\nanswers\n\n```json\n(.+?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("options", "answer"), EXAMPLES)
def test_options_return_the_values_on_the_page(options: str, answer: str) -> None:
    """Each pair of options and answer is checked."""
    assert plan(json.loads(options)).apply(RESULT).value == json.loads(answer)


def test_each_option_has_an_example() -> None:
    """The examples cover every option, and every JSON block is part of an example."""
    shown = {name for options, _ in EXAMPLES for name in json.loads(options)}
    assert shown == {"at", "filter", "sort", "limit", "select_fields", "aggregate", "return_mode"}
    assert len(EXAMPLES) * 2 + 1 == PAGE.count("```json")


@pytest.mark.parametrize(("path", "value"), table("path", "leads to"))
def test_paths_select_the_values_on_the_page(path: str, value: str) -> None:
    """Each row of the table is checked."""
    assert find_value(parse_path(path), RESULT) == (MISSING if value == "nothing" else json.loads(value))


@pytest.mark.parametrize(("text", "ids"), table("filter", "rows"))
def test_filters_keep_the_rows_on_the_page(text: str, ids: str) -> None:
    """Each row of the table is checked by the ids of the rows."""
    kept = filter_rows(RESULT["items"], parse_filter(text))
    assert [row["id"] for row in kept] == [int(number) for number in ids.split(", ") if number]


@pytest.mark.parametrize(("text", "reported"), table("filter", "error"))
def test_errors_match_the_page(text: str, reported: str) -> None:
    """The message is the same except for the example at its end."""
    with pytest.raises(LanguageError) as raised:
        parse_filter(text)
    assert str(raised.value).startswith(f"{reported}; for example: ")


@pytest.mark.parametrize(("template", "value"), table("template", "becomes"))
def test_templates_resolve_to_the_values_on_the_page(template: str, value: str) -> None:
    """Each row of the table is checked."""
    assert compile_template(template).resolve(CONTEXT) == json.loads(value)
