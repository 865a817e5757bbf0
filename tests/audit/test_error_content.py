"""What is stored of the words of errors."""

import pytest
from toold.audit import REDACTED, error_summary, stored_message
from toold.protocol.error_codes import CallError, InvalidArgumentsError, OutcomeUnknownError, ToolExecutionError

SECRET = "patient Jane Roe"


@pytest.mark.parametrize(
    ("error", "summary"),
    [
        (ToolExecutionError(SECRET), None),
        (ToolExecutionError(SECRET, summary="crm answered HTTP 500."), "crm answered HTTP 500."),
        (ToolExecutionError.content_free("The tool crm failed."), "The tool crm failed."),
        (OutcomeUnknownError(), "The call was interrupted; whether it had its effect is unknown."),
        (InvalidArgumentsError(SECRET, details={"fields": {"a.b": SECRET, "c.0": SECRET}}), "fields: a.b, c.0"),
        (
            InvalidArgumentsError(SECRET, details={"fields": {f"{SECRET}.x": "", "1" * 9: ""}}),
            "fields: name[16].x, name[9]",
        ),
        (InvalidArgumentsError(SECRET, details={"fields": SECRET}), None),
    ],
)
def test_a_summary_has_no_content(error: CallError, summary: str | None) -> None:
    """A message is content unless its raiser says otherwise; plain names of wrong fields are not."""
    assert error_summary(error) == summary


def test_the_type_of_the_cause_is_in_the_summary() -> None:
    """Of an error without a summary, so that its place can be found."""
    with pytest.raises(ToolExecutionError) as caught:
        raise ToolExecutionError(SECRET) from ValueError(SECRET)
    assert error_summary(caught.value) == "cause: ValueError"


def test_only_some_fields_are_named() -> None:
    """The rest is counted, and deep paths are cut."""
    fields = {f"f{number}": "" for number in range(20)} | {"a.b.c.d.e.f.g": ""}
    summary = error_summary(InvalidArgumentsError(SECRET, details={"fields": fields}))
    assert summary == "fields: f0, f1, f2, f3, f4, f5, f6, f7, …13"
    deep = InvalidArgumentsError(SECRET, details={"fields": {"a.b.c.d.e.f.g": ""}})
    assert error_summary(deep) == "fields: a.b.c.d.e.f.…"


def test_stored_messages_are_limited_and_redacted() -> None:
    """Messages can quote a client or a vendor, so they are cut and secrets are replaced."""
    message = stored_message("full", "bad key sk-abcdef0123456789 " + "x" * 10_000, None)
    assert message is not None
    assert message.startswith(f"bad key {REDACTED} ")
    assert len(message) == 500
    assert stored_message("shape", SECRET, None) is None
    assert stored_message("none", SECRET, "kimi failed") is None
