"""Forms for ``ToolContext.elicit``: converts a pydantic model to a schema of MCP's elicitation, and the answer to an
instance of the model. Pure.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..protocol.questions.client_question import ELICIT, ClientQuestion, read_question
from ..protocol.questions.question_answer import InvalidAnswerError
from ..protocol.tool_call import Json

FormT = TypeVar("FormT", bound=BaseModel)


def form_question(message: str, form: type[BaseModel]) -> ClientQuestion:
    """Returns the question that asks for a form.

    Raises:
        QuestionRefusedError: the model is not a form: its fields must be texts, numbers, booleans or choices.
    """
    return read_question(ELICIT, {"mode": "form", "message": message, "requestedSchema": _schema_of(form)})


def form_answer(answer: Mapping[str, Json], form: type[FormT]) -> FormT | None:
    """Returns the filled form; None if the person declined.

    Raises:
        InvalidAnswerError: the values do not fit the model.
    """
    if answer["action"] != "accept":
        return None
    try:
        return form.model_validate(answer["content"])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the form"
        raise InvalidAnswerError(f"The client's answer is invalid: {where}: {first['msg']}.") from None


@lru_cache(maxsize=256)
def _schema_of(form: type[BaseModel]) -> dict[str, Any]:
    schema = form.model_json_schema()
    definitions = schema.get("$defs", {})
    fields = {name: _flat(field, definitions) for name, field in schema.get("properties", {}).items()}
    return {"type": "object", "properties": fields, "required": schema.get("required", [])}


def _flat(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A field with its references resolved, and without ``null`` for optional fields, which forms omit instead."""
    target = field.get("$ref")
    if isinstance(target, str):
        named = definitions.get(target.removeprefix("#/$defs/"), {})
        return {**_flat(named, definitions), **{key: value for key, value in field.items() if key != "$ref"}}
    kinds = [kind for kind in field.get("anyOf", ()) if kind.get("type") != "null"]
    if len(kinds) == 1:
        outer = {key: value for key, value in field.items() if key != "anyOf"}
        return {**_flat(kinds[0], definitions), **outer}
    flat = dict(field)
    if isinstance(flat.get("items"), Mapping):
        flat["items"] = _flat(flat["items"], definitions)
    if "const" in flat:  # a Literal with one value
        flat["enum"] = [flat.pop("const")]
    return flat
