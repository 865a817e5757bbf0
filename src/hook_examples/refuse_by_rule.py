"""A hook for toold: refuses calls by rules about their arguments.

    [hooks.rules]
    command = ["python3", "refuse_by_rule.py", "rules.json"]
    events = ["before"]

rules.json is a list of rules:

    [
      {"tool": "files_write*", "argument": "path", "is": "path", "allow_if": "/srv/public/.*",
       "words": "Write only below /srv/public."},
      {"tool": "*", "argument": "query", "refuse_if": "(?i).*\\b(drop|truncate)\\b.*", "words": "Only read."}
    ]

- tool: a glob of tool names.
- argument: the name of an argument, or a path such as options.query; for a list, each element is checked.
- allow_if: a regular expression that the whole value must match; a call without the argument is refused.
- refuse_if: a regular expression that the whole value must not match.
- is: "path" if the value is a path. Its parts ".." and "." are resolved first.
- words: the error that the caller gets.
"""

import json
import posixpath
import re
import sys
from fnmatch import fnmatchcase
from typing import Any

KEYS = {"tool", "argument", "allow_if", "refuse_if", "is", "words"}


def read_rules(text: str) -> list[dict[str, Any]]:
    """The rules of a file.

    Raises:
        ValueError: a rule is invalid. A program that ignored it would allow forbidden calls.
    """
    rules = json.loads(text)
    for number, rule in enumerate(rules, 1):
        if not {"tool", "argument", "words"} <= rule.keys() <= KEYS or ("allow_if" in rule) == ("refuse_if" in rule):
            raise ValueError(f"rule {number} must have tool, argument, words, and either allow_if or refuse_if")
        re.compile(rule.get("allow_if") or rule["refuse_if"])
    return list(rules)


def values_at(value: Any, steps: list[str]) -> list[str]:
    """The texts at a path. Other values are converted to JSON."""
    if isinstance(value, list):
        return [text for item in value for text in values_at(item, steps)]
    if not steps:
        return [value if isinstance(value, str) else json.dumps(value)]
    return values_at(value[steps[0]], steps[1:]) if isinstance(value, dict) and steps[0] in value else []


def refusal(rules: list[dict[str, Any]], tool: str, arguments: dict[str, Any]) -> str | None:
    """Why a call is refused; None if it is allowed."""
    for rule in rules:
        if not fnmatchcase(tool, rule["tool"]):
            continue
        values = values_at(arguments, rule["argument"].split("."))
        if rule.get("is") == "path":
            values = [posixpath.normpath(value) for value in values]
        if "allow_if" in rule:
            refused = not values or not all(re.fullmatch(rule["allow_if"], value, re.DOTALL) for value in values)
        else:
            refused = any(re.fullmatch(rule["refuse_if"], value, re.DOTALL) for value in values)
        if refused:
            return str(rule["words"])
    return None


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - plain Python, to be copied
        rules = read_rules(file.read())
    for line in sys.stdin:
        question = json.loads(line)
        words = refusal(rules, question["call"]["tool"], question["arguments"])
        answer = {} if words is None or question["event"] == "after" else {"refuse": words}
        print(json.dumps({"id": question["id"], **answer}), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
