"""The thinking depth in the vendors' request format. Pure.

Both vendors have a switch, ``thinking: {"type": …}``, and for newer models ``reasoning_effort``
(platform.kimi.ai/docs/guide/use-thinking-effort, docs.bigmodel.cn/cn/guide/capabilities/thinking). Both ignore or remap
unsupported values, so these are rejected here.
"""

from typing import Any

from ..protocol.error_codes import InvalidArgumentsError
from .model import Depth, Model


def check_thinking(model: Model, requested: bool | Depth | None) -> None:
    """Checks that the model supports the requested thinking.

    Raises:
        InvalidArgumentsError: the model does not; the message names the supported values.
    """
    if requested is True and model.thinking == "none":
        raise _refused(f"{model.id} cannot think; omit thinking or use a model that can.")
    if requested is False and model.thinking == "always":
        raise _refused(f"{model.id} always thinks; omit thinking or use another model.")
    if isinstance(requested, str) and requested not in model.depths:
        raise _refused(f"{model.id} does not support the thinking depth {requested!r}; {_choice(model)}.")


def thinking_fields(model: Model, requested: bool | Depth | None) -> dict[str, Any]:
    """Returns the fields of the request body; empty if the vendor's default is requested.

    Sends ``thinking`` and ``reasoning_effort`` together only if the model has both: Moonshot rejects the pair.
    """
    if requested is None or model.thinking == "none":
        return {}
    fields: dict[str, Any] = {}
    if model.thinking == "switch":
        fields["thinking"] = {"type": "disabled" if requested in (False, "minimal") else "enabled"}
    if requested in model.efforts:
        fields["reasoning_effort"] = requested
    return fields


def _choice(model: Model) -> str:
    """Describes the supported values."""
    if model.thinking == "none":
        return "it cannot think; omit thinking, or use 'minimal', which is the same"
    return f"supported: {', '.join(repr(depth) for depth in model.depths)}"


def _refused(message: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(message, details={"fields": {"thinking": message}})
