"""Files of cases: what is wrong is said by line and field."""

from pathlib import Path

import pytest
from toold.cli.agent_evals import EvalFileError, read_eval_file, unknown_agent

YAML = """\
agent: helper
runs: 3
cases:
  - name: first
    prompt: Go.
    expect:
      - called: echo
        where: value > 3
      - matches: "^All"
"""
TOML = """\
agent = "helper"

[[cases]]
name = "first"
prompt = "Go."
expect = [{ called = "echo", times = 2 }]

[[cases]]
name = "second"
prompt = "Go."

[[cases.expect]]
contains = "well"
"""


def read(tmp_path: Path, text: str, suffix: str) -> str:
    """What the file's reader says; empty if it reads it."""
    path = tmp_path / f"cases.{suffix}"
    path.write_text(text, encoding="utf-8")
    try:
        read_eval_file(path)
    except EvalFileError as error:
        return str(error).replace(f"{path}", "FILE")
    return ""


def test_both_formats_are_read(tmp_path: Path) -> None:
    """YAML, which includes JSON, and TOML have the same fields."""
    assert read(tmp_path, YAML, "yaml") == read(tmp_path, TOML, "toml") == ""
    case = '{"name": "a", "prompt": "p", "expect": [{"contains": "x"}]}'
    assert read(tmp_path, f'{{"agent": "helper", "cases": [{case}]}}', "json") == ""


@pytest.mark.parametrize(
    ("suffix", "old", "new", "says"),
    [
        ("yaml", "prompt: Go.", "promt: Go.", "FILE:5: cases[0].promt: is not a field; did you mean 'prompt'?"),
        ("yaml", "value > 3", "value >", "FILE:8: cases[0].expect[0].where: is not a condition"),
        ("yaml", '"^All"', '"("', "FILE:9: cases[0].expect[1].matches: is not a regular expression"),
        ("yaml", "called: echo", "contains: x", "FILE:7: cases[0].expect[0]: where does not belong to contains"),
        ("yaml", "      - matches", "        matches", "must have exactly one of called, not_called"),
        ("yaml", "runs: 3", "runs: 0", "FILE:2: runs: "),
        ("yaml", "agent: helper\n", "", "FILE:3: cases[0]: needs agent, here or at the top"),
        (
            "yaml",
            "called: echo\n        where: value > 3",
            "judge: Is it good?",
            "name its model at the top of the file",
        ),
        ("yaml", "called: echo\n        where: value > 3", "schema: {type: 5}", "FILE:7: cases[0].expect[0].schema: "),
        ("yaml", "cases:", "cases: [", "FILE: "),
        ("yaml", "runs: 3", "runs: 101", "FILE:2: runs: "),
        ("toml", 'contains = "well"', "contains = 5", "FILE:13: cases[1].expect[0].contains: "),
        ("toml", 'name = "second"', 'name = "first"', "FILE:9: cases[1].name: 'first' is the name of another case"),
        ("toml", "times = 2", "tmes = 2", "FILE:6: cases[0].expect[0].tmes: is not a field; did you mean 'times'?"),
        ("txt", "", "", "FILE: must be a .yaml, .yml, .toml or .json file"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, suffix: str, old: str, new: str, says: str) -> None:
    """The error has the line and the field, and what it may be."""
    text = TOML if suffix == "toml" else YAML
    said = read(tmp_path, text.replace(old, new, 1), suffix)
    assert says in said
    assert "one entry or more" not in said  # the list has an entry, which is wrong


def test_a_case_needs_an_agent_that_the_daemon_has(tmp_path: Path) -> None:
    """An unknown one is an error before any run, with a similar name."""
    path = tmp_path / "cases.yaml"
    path.write_text(YAML, encoding="utf-8")
    file = read_eval_file(path)
    assert unknown_agent(file, ["echo", "helper"]) is None
    assert (
        unknown_agent(file, ["echo", "helpers"]) == "first: the daemon has no agent 'helper'; did you mean 'helpers'?"
    )
