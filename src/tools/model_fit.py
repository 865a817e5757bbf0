"""Whether a model can take a request, before it is sent and paid for. Pure."""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

from ..protocol.errors import ContextLengthExceededError, InvalidArgumentsError
from ..providers import Catalogue, Message, Model, TextPart

BYTES_PER_TOKEN: Final = 4
"""Of UTF-8: four letters of English, one and a third Chinese characters. English text and code come to 3–5 bytes a
token with both vendors' tokenizers, Chinese to 3–5, so this errs low as often as high: what is over the window by this
measure is clearly too long, and what is near it is left to the vendor, whose refusal has the same code."""

_NAMED: Final = 5
"""So many models are named in an error."""


def estimate_tokens(texts: Iterable[str]) -> int:
    """About how many tokens the texts are: their UTF-8 bytes by ``BYTES_PER_TOKEN``."""
    return sum(len(text) if text.isascii() else len(text.encode(errors="replace")) for text in texts) // BYTES_PER_TOKEN


def texts_of(messages: Iterable[Message]) -> Iterable[str]:
    """Every text in the messages; images are left out, since their price in tokens is the vendor's secret."""
    for message in messages:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (part.text for part in message.content if isinstance(part, TextPart))


def usable_models(catalogue: Catalogue, providers: Iterable[str], today: dt.date) -> tuple[Model, ...]:
    """The models of these providers that are not switched off."""
    wanted = set(providers)
    return tuple(
        model
        for model in catalogue.models
        if model.provider in wanted and (model.retired is None or model.retired > today)
    )


def require_abilities(model: Model, usable: Sequence[Model], *, images: bool, thinking: bool | None) -> None:
    """Check that the model sees and thinks as it is asked to.

    Raises:
        InvalidArgumentsError: it does not; the message names models that do.
    """
    if images and "image" not in model.inputs:
        raise _cannot("images", f"{model.id} takes no images", [m for m in usable if "image" in m.inputs])
    if thinking is True and model.thinking == "none":
        raise _cannot("thinking", f"{model.id} does not think", [m for m in usable if m.thinking != "none"])
    if thinking is False and model.thinking == "always":
        raise _cannot("thinking", f"{model.id} always thinks", [m for m in usable if m.thinking != "always"])


def require_room(model: Model, usable: Sequence[Model], *, tokens: int, max_tokens: int | None, images: bool) -> None:
    """Check that ``tokens`` of question and ``max_tokens`` of answer fit.

    Raises:
        InvalidArgumentsError: ``max_tokens`` is more than the model ever answers.
        ContextLengthExceededError: both together are over its window; the message has the numbers, and the models
            that they would fit, the smallest window first.
    """
    if max_tokens is not None and model.max_output is not None and max_tokens > model.max_output:
        what = f"{model.id} answers with at most {model.max_output:,} tokens, not {max_tokens:,}"
        raise InvalidArgumentsError(f"max_tokens: {what}.", details={"fields": {"max_tokens": what}})
    needed = tokens + (max_tokens or 0)
    if needed <= model.context_window:
        return
    fitting = sorted(
        (m for m in usable if m.context_window >= needed and (not images or "image" in m.inputs)),
        key=lambda m: m.context_window,
    )
    names = [m.id for m in fitting[:_NAMED]]
    answer = f" and {max_tokens:,} for the answer" if max_tokens else ""
    way_out = (
        f"it would fit {_either(names)}" if names else "send less: no model that is available here has room for it"
    )
    raise ContextLengthExceededError(
        f"The request has about {tokens:,} tokens{answer}, {model.id} holds {model.context_window:,}; {way_out}.",
        details={
            "estimated_tokens": tokens,
            "max_tokens": max_tokens,
            "context_window": model.context_window,
            "models": names,
        },
    )


def _cannot(field: str, what: str, able: Sequence[Model]) -> InvalidArgumentsError:
    names = [model.id for model in able[:_NAMED]]
    way_out = f"name one that does as model: {_either(names)}" if names else "no model that is available here does"
    return InvalidArgumentsError(f"{field}: {what}; {way_out}.", details={"fields": {field: what}, "models": names})


def _either(names: Sequence[str]) -> str:
    return " or ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
