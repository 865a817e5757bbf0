"""The error table is complete, and every error has advice."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from toold.protocol.error_codes import (
    ERROR_CLASSES,
    CallError,
    CallTimeoutError,
    ErrorCode,
    InternalError,
    OverCapacityError,
    ToolError,
    error_from_wire,
)


def test_every_code_has_one_class() -> None:
    """Each code on the wire has exactly one exception class, and each class one code."""
    assert set(ERROR_CLASSES) == set(ErrorCode)
    assert len({cls.code for cls in CallError.__subclasses__()}) == len(CallError.__subclasses__())


@pytest.mark.parametrize("cls", ERROR_CLASSES.values(), ids=lambda cls: cls.code)
def test_errors_have_a_default_message_and_advice(cls: type[CallError]) -> None:
    """A bare error uses its docstring as the message."""
    assert cls().message.endswith(".")
    assert cls().message in (cls.__doc__ or "")
    assert cls.advice.endswith(".")


def test_retryable_requires_a_transient_cause_and_no_second_effect() -> None:
    """The call did not execute, or the tool may run twice."""
    assert OverCapacityError().to_tool_error().retryable
    assert not CallTimeoutError().to_tool_error(repeatable=False).retryable
    assert CallTimeoutError().to_tool_error(repeatable=True).retryable
    assert CallTimeoutError(executed="no").to_tool_error(repeatable=False).retryable
    assert not OverCapacityError(transient=False).to_tool_error(repeatable=True).retryable


def test_an_error_survives_the_wire() -> None:
    """A client raises the same error that the daemon raised."""
    sent = OverCapacityError("Later.", retry_after_ms=250, details={"bound": 32})
    received = error_from_wire(sent.to_tool_error())
    assert isinstance(received, OverCapacityError)
    assert (received.message, received.executed, received.retry_after_ms) == ("Later.", "no", 250)
    assert received.details == {"bound": 32}
    assert received.retryable


@pytest.mark.parametrize("retryable", [True, False])
def test_retryable_is_the_daemons_value(retryable: bool) -> None:
    """A client does not know the tool's annotations, so it keeps the value it received."""
    sent = CallTimeoutError("Later.", executed="maybe").to_tool_error(repeatable=retryable)
    received = error_from_wire(sent)
    assert received.retryable is retryable
    assert received.to_tool_error() == sent


def test_an_unknown_code_becomes_an_internal_error() -> None:
    """A newer daemon's code does not break an older client."""
    error = error_from_wire(ToolError("BRAND_NEW", "Something.", "maybe", False))
    assert isinstance(error, InternalError)
    assert error.message == "Something."


SRC = Path(__file__).parents[2] / "src"
NAMES = {cls.__name__ for cls in ERROR_CLASSES.values()}
CONSTRUCTED = re.compile(rf"\b(?:{'|'.join(NAMES)})\(")


def written_messages() -> Iterator[tuple[str, list[ast.expr]]]:
    """Returns the messages written next to error classes, with their parts: literals and values."""
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not CONSTRUCTED.search(text):  # most files; to parse all takes seconds
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES and node.args:
                message = node.args[0]
                if isinstance(message, ast.JoinedStr):
                    yield f"{path.relative_to(SRC)}:{node.lineno}", message.values
                elif isinstance(message, ast.Constant):
                    yield f"{path.relative_to(SRC)}:{node.lineno}", [message]


def test_messages_are_sentences() -> None:
    """Messages begin with a capital letter or a name, and end with a full stop or a question mark."""
    ill_written, messages = [], list(written_messages())
    for place, (first, *_, last) in ((place, [*parts, parts[-1]]) for place, parts in messages):
        begins = not isinstance(first, ast.Constant) or re.match(r"[A-Z]|[a-z_.]+: |hello ", str(first.value))
        ends = str(last.value).endswith((".", "?")) if isinstance(last, ast.Constant) else names_its_end(last)
        if not (begins and ends):
            ill_written.append(place)
    assert len(messages) > 40
    assert ill_written == []


def names_its_end(part: ast.expr) -> bool:
    """A value at the end is a hint or another complete clause, the end of a sentence, another error's message, or
    punctuated.
    """
    value = part.value if isinstance(part, ast.FormattedValue) else None
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "secret_rejected"
    if isinstance(value, ast.Attribute):
        return value.attr == "message"
    return isinstance(value, ast.Name) and value.id in {"hint", "end", "message"}
