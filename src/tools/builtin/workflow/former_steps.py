"""Converts the confidence and the issues of a step from the forms of earlier servers. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final, get_args

from .workflow_definition import Severity

_CONFIDENCE: Final[Mapping[str, str]] = {
    "planning": "exploring",
    "incomplete": "low",
    "partial": "medium",
    "complete": "certain",
}
"""Maps words of the predecessors' tools to the current words."""
_SEVERITY: Final[Mapping[str, str]] = {
    "blocker": "critical",
    "major": "high",
    "error": "high",
    "moderate": "medium",
    "warning": "medium",
    "minor": "low",
    "note": "info",
    "informational": "info",
}
_SEVERITIES: Final = frozenset(get_args(Severity))
_DESCRIPTIONS: Final = ("title", "issue", "message", "summary", "type")
"""Fields that describe an issue without a description, best first."""


def as_confidence(value: Any) -> Any:
    """Converts a former word for the confidence: ``Very High`` is very_high, ``complete`` is certain."""
    if not isinstance(value, str):
        return value
    word = _word(value)
    return _same(value, _CONFIDENCE.get(word, word))


def as_issues(value: Any) -> Any:
    """Converts issues to the current form: issues that are texts, other words for the severity, lines as text."""
    if not isinstance(value, list):
        return value
    issues = [_issue(item) for item in value]
    return _same(value, issues)


def _issue(item: Any) -> Any:
    if isinstance(item, str) and item:
        return {"description": item}
    if not isinstance(item, dict) or not item:
        return item
    issue = {name: value for name, value in item.items() if value is not None}
    severity = issue.get("severity")
    if isinstance(severity, str) and severity not in _SEVERITIES:
        word = _SEVERITY.get(_word(severity), _word(severity))
        del issue["severity"]
        issue["severity" if word in _SEVERITIES else "rating"] = word
    line = issue.get("line")
    if isinstance(line, str):
        del issue["line"]
        issue |= {"line": int(line)} if line.isdecimal() and len(line) < 10 and int(line) else {"lines": line}
    if not issue.get("description"):
        texts = (issue[name] for name in _DESCRIPTIONS if isinstance(issue.get(name), str) and issue[name])
        issue["description"] = next(texts, json.dumps(item, ensure_ascii=False))
    return issue


def _word(text: str) -> str:
    return text.strip().lower().replace(" ", "_").replace("-", "_")


def _same(value: Any, converted: Any) -> Any:
    """The converted value, or the same object if nothing was converted."""
    return value if converted == value else converted
