"""Reads the stdout of a subagent: its answer and, from JSON, the model and the tokens. Pure."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ...protocol.json_text import InvalidJsonError, parse_json
from .subagent_settings import OutputForm

MAX_ANSWER_CHARS: Final = 200_000
"""Some 50,000 tokens; more would fill the context of the model that asked. The answer notes that the rest was cut
off."""

_ESCAPE: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Colours, titles and cursor movements of terminals (ECMA-48)."""


class SubagentOutputError(ValueError):
    """The output does not have the expected form; the message names the problem."""


@dataclass(frozen=True, slots=True)
class SubagentAnswer:
    """An answer in the program's output."""

    text: str
    failed: bool = False
    """Whether the program reports an error; ``text`` is then its message."""
    model: str | None = None
    usage: dict[str, float] = field(default_factory=dict)
    """Tokens and cost under the program's names; toold does not bill them."""


def read_output(stdout: str, form: OutputForm) -> SubagentAnswer:
    """The answer in the output.

    Raises:
        SubagentOutputError: the output has another form, or contains no answer.
    """
    match form:
        case "text":
            answer = SubagentAnswer(_ESCAPE.sub("", stdout).strip())
        case "claude":
            answer = _claude(_document(stdout))
        case "gemini":
            answer = _gemini(_document(stdout))
        case "codex":
            answer = _codex(stdout)
    if not answer.text:
        raise SubagentOutputError("it contains no answer")
    return answer


def shortened(text: str) -> tuple[str, bool]:
    """The text with at most ``MAX_ANSWER_CHARS`` characters, and whether some were cut off."""
    if len(text) <= MAX_ANSWER_CHARS:
        return text, False
    return f"{text[:MAX_ANSWER_CHARS]}\n\n(Cut off: {len(text):,} characters.)", True


def _document(stdout: str) -> Any:
    """The JSON document in the output, which may follow lines of warnings."""
    start = min((place for place in map(stdout.find, "{[") if place >= 0), default=-1)
    try:
        return parse_json(stdout[start:].strip()) if start >= 0 else {}
    except InvalidJsonError as error:
        raise SubagentOutputError(f"it is not JSON ({error})") from None


def _claude(document: Any) -> SubagentAnswer:
    """``claude -p --output-format json``: one result, or with ``--verbose`` an array of events that ends with it."""
    events = document if isinstance(document, list) else [document]
    result = next((event for event in reversed(events) if _object(event).get("type") == "result"), None)
    if result is None:
        raise SubagentOutputError('it has no object with "type": "result"')
    usage = _numbers(result.get("usage")) | _numbers({"total_cost_usd": result.get("total_cost_usd")})
    failed = bool(result.get("is_error"))
    text = _text(result.get("result")) or (_text(result.get("subtype")) if failed else "")
    return SubagentAnswer(text, failed, next(iter(_object(result.get("modelUsage"))), None), usage)


def _gemini(document: Any) -> SubagentAnswer:
    """``gemini --output-format json``: an object with ``response`` and ``stats``, or with ``error``."""
    answer = _object(document)
    if error := _object(answer.get("error")):
        return SubagentAnswer(_text(error.get("message")) or "unknown error", failed=True)
    models = _object(_object(answer.get("stats")).get("models"))
    model = next(iter(models), None)
    usage = _numbers(_object(models[model]).get("tokens")) if model is not None else {}
    return SubagentAnswer(_text(answer.get("response")), model=model, usage=usage)


def _codex(stdout: str) -> SubagentAnswer:
    """``codex exec --json``: one event per line; the last message of the agent is the answer."""
    text, problem, usage = "", "", dict[str, float]()
    for event in _events(stdout):
        item = _object(event.get("item"))
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            text = _text(item.get("text")) or text
        elif event.get("type") == "turn.completed":
            usage = _numbers(event.get("usage"))
        elif event.get("type") in {"error", "turn.failed"}:
            problem = _text(event.get("message")) or _text(_object(event.get("error")).get("message")) or problem
    return SubagentAnswer(text or problem, failed=not text and bool(problem), usage=usage)


def _events(stdout: str) -> Iterator[dict[str, Any]]:
    for line in stdout.splitlines():
        if line.startswith("{"):
            try:
                yield _object(parse_json(line))
            except InvalidJsonError as error:
                raise SubagentOutputError(f"a line is not JSON ({error})") from None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    """The text without halves of surrogate pairs, which JSON may contain and no answer can."""
    return value.encode(errors="replace").decode().strip() if isinstance(value, str) else ""


def _numbers(value: Any) -> dict[str, float]:
    return {
        _text(name): number
        for name, number in _object(value).items()
        if isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
    }
