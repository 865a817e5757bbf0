"""The example that refuses calls by rules about their arguments."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toold.hook_examples import refuse_by_rule as example
from toold.hook_examples.refuse_by_rule import read_rules, refusal

RULES = read_rules(
    json.dumps(
        [
            {"tool": "files_*", "argument": "path", "is": "path", "allow_if": "/srv/public/.*", "words": "outside"},
            {"tool": "*", "argument": "options.query", "refuse_if": r"(?i).*\b(drop|truncate)\b.*", "words": "no SQL"},
            {"tool": "pay", "argument": "amounts", "refuse_if": r"\d{4,}", "words": "too much"},
        ]
    )
)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("files_write", {"path": "/srv/public/a"}, None),
        ("files_write", {"path": "/srv/public/../../etc/passwd"}, "outside"),
        ("files_write", {"path": "/etc/passwd\n/srv/public/a"}, "outside"),
        ("files_write", {}, "outside"),
        ("files_write", {"path": ["/srv/public/a", "/etc"]}, "outside"),
        ("sql", {"options": {"query": "SELECT 1"}}, None),
        ("sql", {"options": {"query": "SELECT 1;\nDrop TABLE x"}}, "no SQL"),
        ("sql", {"options": "DROP"}, None),
        ("pay", {"amounts": [1, 999]}, None),
        ("pay", {"amounts": [1, 1000]}, "too much"),
        ("other", {"path": "/etc"}, None),
    ],
)
def test_rules(tool: str, arguments: dict[str, Any], expected: str | None) -> None:
    """The whole value must match, over lines and for each element; paths are resolved first."""
    assert refusal(RULES, tool, arguments) == expected


@pytest.mark.parametrize(
    "rule",
    [
        {"tool": "x", "argument": "y", "words": "z"},
        {"tool": "x", "argument": "y", "words": "z", "allow_if": "a", "refuse_if": "b"},
        {"tool": "x", "argument": "y", "words": "z", "refuse": "a"},
        {"tool": "x", "argument": "y", "allow_if": "a"},
        {"tool": "x", "argument": "y", "words": "z", "allow_if": "("},
    ],
)
def test_a_wrong_rule_is_refused(rule: dict[str, str]) -> None:
    """A rule that is ignored would allow what it forbids."""
    with pytest.raises(Exception, match=r"rule 1|unterminated"):
        read_rules(json.dumps([rule]))


@pytest.mark.process
def test_it_is_a_program_of_its_own(tmp_path: Path) -> None:
    """It runs as a copy, without toold; after calls it allows."""
    (tmp_path / "rules.json").write_text(json.dumps(RULES))
    call = {"tool": "files_write"}
    questions = [
        {"id": 1, "event": "before", "call": call, "arguments": {"path": "/etc"}},
        {"id": 2, "event": "after", "call": call, "arguments": {"path": "/etc"}, "result": {"content": []}},
    ]
    run = subprocess.run(
        [sys.executable, "-I", "-S", example.__file__, str(tmp_path / "rules.json")],
        input="\n".join(map(json.dumps, questions)),
        check=True,
        text=True,
        capture_output=True,
    )
    assert [json.loads(line) for line in run.stdout.splitlines()] == [{"id": 1, "refuse": "outside"}, {"id": 2}]
