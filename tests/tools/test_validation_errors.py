"""The messages of argument errors."""

from toold.tools.validation_errors import ValidationErrors, unknown_argument


def test_each_error_is_reported_by_its_path() -> None:
    """Several errors of one field are joined; an error of the whole object has no path in the message."""
    complaints = ValidationErrors()
    complaints.add([], "should be an object")
    complaints.add(["a", "b"], "is missing")
    complaints.add(["a", "b"], "is odd")
    error = complaints.error("echo")
    assert str(error) == "echo: should be an object; a.b is missing, or is odd."
    assert error.details == {"fields": {"arguments": "should be an object", "a.b": "is missing, or is odd"}}


def test_a_field_may_be_called_arguments() -> None:
    """An argument that is named ``arguments`` keeps its name in the error."""
    complaints = ValidationErrors()
    complaints.add(["arguments"], unknown_argument("arguments", ["args"]))
    assert str(complaints.error("execute_tool")).startswith("execute_tool: arguments is not an argument")
