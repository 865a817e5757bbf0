"""The problems of a request to the served registry, in the form of FastAPI's errors. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..protocol.name_suggestions import close_names, did_you_mean
from ..tools import FieldProblem, setting_message

MAX_PROBLEMS: Final = 500
"""The maximum number of problems in an answer. Formatting 90,000 problems of one body took six seconds."""


class RegistryRefusedError(Exception):
    """A refused request, with its HTTP status. ``detail`` is a sentence, or a list of problems by field."""

    def __init__(self, status: int, detail: str | list[dict[str, Any]]) -> None:
        super().__init__(detail if isinstance(detail, str) else "; ".join(map(_sentence, detail)))
        self.status = status
        self.detail = detail


def field_problem(path: Sequence[str | int], message: str, kind: str = "value_error") -> dict[str, Any]:
    """A problem of a field of the body."""
    return {"loc": ["body", *path], "msg": message, "type": kind}


def invalid_fields(problems: Sequence[FieldProblem]) -> RegistryRefusedError:
    """The error for a body whose fields are invalid."""
    if len(problems) > MAX_PROBLEMS:
        return _too_many(len(problems))
    return RegistryRefusedError(422, [field_problem(problem.path, problem.message) for problem in problems])


def invalid_body(error: ValidationError, model: type[BaseModel]) -> RegistryRefusedError:
    """The error for a body that a model refuses."""
    if (count := error.error_count()) > MAX_PROBLEMS:
        return _too_many(count)
    details = error.errors(include_url=False, include_input=False)
    return RegistryRefusedError(422, [_detail(each, model) for each in details])


def _too_many(count: int) -> RegistryRefusedError:
    why = f"has {count:,} invalid, missing or unknown fields; they are listed if they are at most {MAX_PROBLEMS}"
    return RegistryRefusedError(422, [field_problem((), why)])


def _detail(details: ErrorDetails, model: type[BaseModel]) -> dict[str, Any]:
    path, kind = details["loc"], details["type"]
    if kind == "missing":
        return field_problem(path, "is required", kind)
    if kind == "extra_forbidden":
        known = list(model.model_fields) if len(path) == 1 else []
        hint = did_you_mean(close_names(str(path[-1]), known, n=1)) or (f"fields: {', '.join(known)}" if known else "")
        return field_problem(path, f"is not a field{'; ' if hint else ''}{hint}", kind)
    return field_problem(path, setting_message(details), kind)


def _sentence(detail: dict[str, Any]) -> str:
    return f"{'.'.join(map(str, detail['loc'][1:]))} {detail['msg']}".strip()
