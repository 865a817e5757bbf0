"""How deeply a model is asked to reason, in its vendor's words. Pure.

Both vendors have a switch, ``thinking: {"type": …}``, and for their newer models ``reasoning_effort``
(platform.kimi.ai/docs/guide/use-thinking-effort, docs.bigmodel.cn/cn/guide/capabilities/thinking). Either ignores or
remaps what it does not know, so what a model cannot do is refused here.
"""

from typing import Any

from ..protocol.error_codes import InvalidArgumentsError
from .model_catalog import Depth, Model


def check_thinking(model: Model, wanted: bool | Depth | None) -> None:
    """Refuse what the model cannot do.

    Raises:
        InvalidArgumentsError: names what it can.
    """
    if wanted is True and model.thinking == "none":
        raise _refused(f"{model.id} cannot think first; leave thinking out or name a model that can.")
    if wanted is False and model.thinking == "always":
        raise _refused(f"{model.id} always thinks first; leave thinking out or name another model.")
    if isinstance(wanted, str) and wanted not in model.depths:
        raise _refused(f"{model.id} cannot think to the depth {wanted!r}; {_choice(model)}.")


def thinking_fields(model: Model, wanted: bool | Depth | None) -> dict[str, Any]:
    """The fields of the request's body; none where the vendor does by itself what is wanted.

    ``thinking`` and ``reasoning_effort`` stand together only where the model has both: Moonshot refuses the pair.
    """
    if wanted is None or model.thinking == "none":
        return {}
    fields: dict[str, Any] = {}
    if model.thinking == "switch":
        fields["thinking"] = {"type": "disabled" if wanted in (False, "minimal") else "enabled"}
    if wanted in model.efforts:
        fields["reasoning_effort"] = wanted
    return fields


def _choice(model: Model) -> str:
    """What a model can do, for people."""
    if model.thinking == "none":
        return "it cannot think first, so leave thinking out or ask for 'minimal', which is the same"
    words = ", ".join(repr(depth) for depth in model.depths)
    if model.efforts:
        return f"it can do {words}"
    return f"it has no degrees: ask for {words}" if model.thinking == "always" else f"it has a switch alone: {words}"


def _refused(message: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(message, details={"fields": {"thinking": message}})
