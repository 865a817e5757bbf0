"""Answers that must match a JSON Schema. Pure."""

import json
import re
from typing import Any, Final

from ...protocol.error_codes import InvalidArgumentsError
from ..json_schema import JsonSchema

_FENCED: Final = re.compile(r"\A\s*```[a-z]*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
"""Matches a code block, because models often put JSON into one."""
_MAX_PROBLEM_CHARS: Final = 2000


class AnswerMismatchError(ValueError):
    """An answer does not match its schema; the message says why."""

    @property
    def correction(self) -> str:
        """The message to the model."""
        return f"Your answer does not match the required JSON Schema: {self}. Answer again with the JSON object only."


def schema_instruction(schema: dict[str, Any]) -> str:
    """The part of the system prompt that asks for the schema. It depends only on the schema, so vendors can cache
    it.
    """
    wanted = "Your final answer must be one JSON object that matches this JSON Schema, without other text:"
    return f"{wanted}\n{json.dumps(schema, sort_keys=True)}"


def read_answer(text: str, schema: JsonSchema) -> Any:
    """Returns the answer's object.

    Raises:
        AnswerMismatchError: the answer is not JSON, or does not match the schema.
    """
    fenced = _FENCED.match(text)
    try:
        value = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        raise AnswerMismatchError(f"it is not JSON ({str(error)[:200]})") from None
    if not isinstance(value, dict):
        raise AnswerMismatchError("it is not a JSON object")
    try:
        schema.check("answer", value)
    except InvalidArgumentsError as error:
        raise AnswerMismatchError(error.message[:_MAX_PROBLEM_CHARS].rstrip(".")) from None
    return value
