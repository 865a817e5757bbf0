"""What is said of wrong arguments."""

from toold.tools.validation_errors import ValidationErrors, surplus


def test_each_field_is_told_by_its_path() -> None:
    """What is wrong twice is joined, and what is wrong with all together has no name before it."""
    complaints = ValidationErrors()
    complaints.add([], "should be an object")
    complaints.add(["a", "b"], "is missing")
    complaints.add(["a", "b"], "is odd")
    error = complaints.error("echo")
    assert str(error) == "echo: should be an object; a.b is missing, or is odd."
    assert error.details == {"fields": {"arguments": "should be an object", "a.b": "is missing, or is odd"}}


def test_a_field_may_be_called_arguments() -> None:
    """It keeps its name, as any other."""
    complaints = ValidationErrors()
    complaints.add(["arguments"], surplus("arguments", ["args"]))
    assert str(complaints.error("execute_tool")).startswith("execute_tool: arguments is not an argument")
