"""Chooses the media type of a request body by the given arguments. Pure."""

from collections.abc import Mapping
from typing import Any

from ...protocol.error_codes import InvalidArgumentsError
from .api_operation import ApiBody


def choose_body(body: ApiBody, arguments: Mapping[str, Any]) -> ApiBody:
    """Returns the media type that the caller names, or else the first media type that has all given arguments of the
    body.

    Raises:
        InvalidArgumentsError: the named media type lacks an argument, or an argument that it requires is missing.
    """
    if body.choice is None:
        return body
    bodies = (body, *body.others)
    possible = {name for each in bodies for name in each.arguments}
    sent = [name for name in arguments if name in possible]
    if body.choice in arguments:
        chosen = next(each for each in bodies if each.declared_type == arguments[body.choice])
    else:
        chosen = next((each for each in bodies if set(sent) <= each.arguments.keys()), body)
    own = chosen.arguments
    fields = {
        name: f"is not part of a body of type {chosen.declared_type}, which has {', '.join(own)}"
        for name in sent
        if name not in own
    }
    if chosen.required or sent:
        lacks = f"is missing: a body of type {chosen.declared_type} requires it"
        fields |= {name: lacks for name, required in own.items() if required and name not in arguments}
    if fields:
        message = "; ".join(f"{name} {wrong}" for name, wrong in fields.items())
        raise InvalidArgumentsError(f"{message}.", details={"fields": fields})
    return chosen
