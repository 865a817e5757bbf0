"""The error table is complete in both directions, and every error says what to do."""

import pytest
from toold.protocol.errors import (
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
def test_an_error_without_words_says_its_docstring_and_has_advice(cls: type[CallError]) -> None:
    """Raised bare, an error still tells what happened, and the table tells what to do."""
    assert cls().message.endswith(".")
    assert cls().message in (cls.__doc__ or "")
    assert cls.advice.endswith(".")


def test_retryable_needs_a_passing_cause_and_no_second_effect() -> None:
    """``retryable`` is true only where the cause may pass and nothing was executed or the tool may run twice."""
    assert OverCapacityError().to_tool_error().retryable
    assert not CallTimeoutError().to_tool_error(repeatable=False).retryable
    assert CallTimeoutError().to_tool_error(repeatable=True).retryable
    assert CallTimeoutError(executed="no").to_tool_error(repeatable=False).retryable
    assert not OverCapacityError(transient=False).to_tool_error(repeatable=True).retryable


def test_an_error_survives_the_wire() -> None:
    """What a client raises for an error frame says the same as what the daemon raised."""
    sent = OverCapacityError("Later.", retry_after_ms=250, details={"bound": 32})
    received = error_from_wire(sent.to_tool_error())
    assert isinstance(received, OverCapacityError)
    assert (received.message, received.executed, received.retry_after_ms) == ("Later.", "no", 250)
    assert received.details == {"bound": 32}
    assert received.transient


def test_an_unknown_code_becomes_an_internal_error() -> None:
    """A newer daemon's code does not break an older client."""
    error = error_from_wire(ToolError("BRAND_NEW", "Something.", "maybe", False))
    assert isinstance(error, InternalError)
    assert error.message == "Something."
