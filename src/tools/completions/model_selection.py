"""Which model answers a question: the one that is named, the default one, or the cheapest that can. Pure."""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ...protocol.error_codes import ContextLengthExceededError, InvalidArgumentsError
from ...providers import Depth, Model, ModelCatalog, ModelPrice, ProviderName
from .model_question import AUTO

_NAMED: Final = 5
"""So many models are named in an error."""

_USD_PER: Final[Mapping[str, float]] = {"USD": 1.0, "CNY": 0.14}
"""Only so that prices in both currencies can be ranked; no amount is ever told that was converted."""


@dataclass(frozen=True, slots=True)
class ModelRequirements:
    """What a question needs of its model."""

    tokens: int
    """Of the question, about."""
    max_tokens: int | None = None
    """Of the answer, where they are bounded."""
    images: bool = False
    linked_images: bool = False
    """Whether some of them are addresses."""
    thinking: bool | Depth | None = None
    tools: bool = False
    web_search: bool = False
    structured: bool = False
    """Whether the answer is to be JSON."""
    temperature: bool = False
    """Whether one is asked for."""
    provider: ProviderName | None = None
    """Whose it has to be; None where that does not matter."""

    @property
    def window(self) -> int:
        """Tokens that question and answer come to, as far as is known."""
        return self.tokens + (self.max_tokens or 0)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, and why it was chosen where that was not the caller's doing."""

    model: Model
    because: str | None = None


def usable_models(
    catalog: ModelCatalog, providers: Iterable[str], today: dt.date, *, absent: Collection[str] = ()
) -> tuple[Model, ...]:
    """The models of these providers that are not switched off, nor ``absent`` by what their vendors say."""
    wanted = set(providers)
    return tuple(
        model
        for model in catalog.models
        if model.provider in wanted and model.id not in absent and (model.retired is None or model.retired > today)
    )


def lacking(model: Model, need: ModelRequirements) -> tuple[str, str] | None:
    """The argument that a model cannot be asked with, and why; None where it can do all that is needed."""
    if need.provider not in {None, model.provider}:
        return "model", f"{model.id} is a model of {model.provider}, and one of {need.provider} is asked for"
    if need.images and "image" not in model.inputs:
        return "images", f"{model.id} takes no images"
    if need.linked_images and not model.takes_addresses:
        return "images", f"{model.id} takes images themselves and not their addresses"
    if problem := _thinks_otherwise(model, need):
        return "thinking", problem
    if need.tools and not model.tools:
        return "tools", f"{model.id} cannot call tools"
    if need.web_search and not model.web_search:
        return "web_search", f"{model.id} cannot search the web"
    if need.structured and model.structured == "none":
        return "response_format", f"{model.id} cannot be held to JSON"
    if need.temperature and model.fixed_temperature:
        return "temperature", f"{model.id} has a temperature of its own"
    if need.max_tokens is not None and model.max_output is not None and need.max_tokens > model.max_output:
        return "max_tokens", f"{model.id} answers with at most {model.max_output:,} tokens, not {need.max_tokens:,}"
    return None


def _thinks_otherwise(model: Model, need: ModelRequirements) -> str | None:
    wanted = need.thinking
    if wanted is True and model.thinking == "none":
        return f"{model.id} does not think"
    if wanted is False and model.thinking == "always":
        return f"{model.id} always thinks"
    if isinstance(wanted, str) and model.nearest_depth(wanted) is None:
        return f"{model.id} does not think" if model.thinking == "none" else _depths(model, wanted)
    if wanted not in {None, False, "minimal"} and need.web_search and model.searches_without_thinking:
        return f"{model.id} does not think where it searches the web"
    return None


def _depths(model: Model, wanted: bool | Depth | None) -> str:
    return f"{model.id} can think {either(model.depths)}, not {wanted}"


def has_the_depth(model: Model, thinking: bool | Depth | None) -> bool:
    """Whether the model can think exactly as deeply as is asked, where a depth is."""
    return not isinstance(thinking, str) or thinking in model.depths


def nearest(model: Model, thinking: bool | Depth | None) -> bool | Depth | None:
    """What a model that can do what is needed (``lacking``) is asked in place of this."""
    return model.nearest_depth(thinking) if isinstance(thinking, str) else thinking


def _holds(model: Model, need: ModelRequirements) -> bool:
    """Whether question and answer fit its window, as far as is known."""
    return model.context_window >= need.window


def require_able(model: Model, need: ModelRequirements, usable: Sequence[Model]) -> None:
    """Check that a model can do what is needed.

    Raises:
        InvalidArgumentsError: it cannot; the message names models that can.
    """
    missing = lacking(model, need)
    if missing is None:
        return
    field, what = missing
    names = [other.id for other in usable if lacking(other, need) is None and _holds(other, need)][:_NAMED]
    way_out = f"name one that does as model: {either(names)}" if names else "no model that is available here does"
    raise InvalidArgumentsError(f"{field}: {what}; {way_out}.", details={"fields": {field: what}, "models": names})


def too_long(model: Model, need: ModelRequirements, usable: Sequence[Model]) -> ContextLengthExceededError:
    """The error of a question that does not fit: with the numbers, and the models that it would fit, smallest first."""
    fitting = sorted(
        (other for other in usable if _holds(other, need) and lacking(other, need) is None),
        key=lambda other: other.context_window,
    )
    names = [other.id for other in fitting[:_NAMED] if other is not model]
    answer = f" and {need.max_tokens:,} for the answer" if need.max_tokens else ""
    way_out = f"it would fit {either(names)}" if names else "send less: no model that is available here has room for it"
    return ContextLengthExceededError(
        f"The request has about {need.tokens:,} tokens{answer}, {model.id} holds {model.context_window:,}; {way_out}.",
        details={
            "estimated_tokens": need.tokens,
            "max_tokens": need.max_tokens,
            "context_window": model.context_window,
            "models": names,
        },
    )


def choose(
    name: str | None,
    need: ModelRequirements,
    catalog: ModelCatalog,
    usable: Sequence[Model],
    *,
    default: str,
    answer_tokens: int,
    room: Callable[[Model], int],
    unlisted: Collection[str] = (),
) -> ModelChoice:
    """The model of this name, listed by its vendor or not; for ``AUTO`` the ``cheapest``.

    Where the caller named none it is the one of the name ``default``, if that can do what is needed, else the
    ``cheapest``, of the same vendor if any of its models can. That goes before it too where it can think nearly as
    deeply as is asked, and others of the vendor exactly so. Whether all of the question has the room is no matter: what
    does not is left out of it.

    Raises:
        InvalidArgumentsError: the name is unknown, or no model, or not the one that was named, can do what is needed.
    """
    able = partial(cheapest, usable=usable, answer_tokens=answer_tokens, room=room, unlisted=unlisted)
    if name is None:
        model = catalog.resolve(default)
        same = replace(need, provider=need.provider or model.provider)
        missing = lacking(model, need)
        if missing is not None:
            why = missing[1]
        elif has_the_depth(model, need.thinking) or not _with_the_depth(usable, same):
            return ModelChoice(model)
        else:
            why = _depths(model, need.thinking)
        choice = able(same if any(lacking(other, same) is None for other in usable) else need)
        return replace(choice, because=f"{choice.because}; the default model was passed over: {why}")
    if name.strip().lower() == AUTO:
        return able(need)
    model = catalog.resolve(name)
    require_able(model, need, usable)
    return ModelChoice(model)


def cheapest(
    need: ModelRequirements,
    usable: Sequence[Model],
    *,
    answer_tokens: int,
    room: Callable[[Model], int],
    unlisted: Collection[str] = (),
) -> ModelChoice:
    """The model that ``AUTO`` stands for: of those that can and have the room, the one that costs least for this call.

    Those that can think exactly as deeply as is asked go before those that can nearly.

    An answer without a bound counts as ``answer_tokens``. Models whose price is not known come after all others; of
    those that cost the same it is the catalog's first one. Where none has the room, it is the one with the most room:
    what the question can do without is then left out of it. Models that their vendor does not list (``unlisted``, by
    their ids) are only taken where no other one can.

    Raises:
        InvalidArgumentsError: no model that can be asked does what is needed.
    """
    able = [model for model in usable if lacking(model, need) is None]
    if not able:
        raise _none_able(need, usable)
    able = [model for model in able if model.id not in unlisted] or able
    fitting = [model for model in able if room(model) >= need.tokens]
    if not fitting:
        largest = max(able, key=room)
        return ModelChoice(largest, f"it has the largest window of the {_models(len(able))} that can do what is asked")
    fitting = _with_the_depth(fitting, need) or fitting
    if len(fitting) == 1:
        return ModelChoice(fitting[0], "it is the only available model that can do what is asked and has the room")
    out = answer_tokens if need.max_tokens is None else need.max_tokens
    best = min(fitting, key=lambda model: _dollars(model.price, need.tokens, out))
    ranked = "the cheapest" if best.price else "the first"
    return ModelChoice(
        best, f"it is {ranked} of the {_models(len(fitting))} that can do what is asked and have the room"
    )


def _with_the_depth(models: Sequence[Model], need: ModelRequirements) -> list[Model]:
    """Those of the models that can do what is needed, and think exactly as deeply as is asked."""
    return [model for model in models if lacking(model, need) is None and has_the_depth(model, need.thinking)]


def either(names: Sequence[str], word: str = " or ") -> str:
    return word.join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


def _dollars(price: ModelPrice | None, tokens: int, answer: int) -> float:
    if price is None:
        return float("inf")
    return (tokens * price.input + answer * price.output) * _USD_PER[price.currency]


def _none_able(need: ModelRequirements, usable: Sequence[Model]) -> InvalidArgumentsError:
    """Told by what no model does at all, or else by what the most stumble over first: that is what to change."""
    usable = [model for model in usable if need.provider in {None, model.provider}]
    asked = _asked(need)
    by_none = [field for field, (_, alone) in asked.items() if all(lacking(model, alone) for model in usable)]
    reasons = by_none[:1] or [missing[0] for model in usable if (missing := lacking(model, need))]
    field = max(reasons, key=reasons.count) if reasons else "model"
    words = [asked[name][0] for name in by_none or asked] or ["be asked"]
    at_once = " at once" if len(words) > 1 and not by_none else ""
    what = f"no model that is available here can {either(words, ' or ' if by_none else ' and ')}{at_once}"
    return InvalidArgumentsError(f"{field}: {what}; ask for less.", details={"fields": {field: what}, "models": []})


def _asked(need: ModelRequirements) -> dict[str, tuple[str, ModelRequirements]]:
    """By its argument each thing that is needed: in words, and as the only one."""
    alone = ModelRequirements(need.tokens, provider=need.provider)
    asked: dict[str, tuple[str, ModelRequirements]] = {}
    if need.images:
        what = "take images by their addresses" if need.linked_images else "take images"
        asked["images"] = (what, replace(alone, images=True, linked_images=need.linked_images))
    if need.thinking is not None:
        off = need.thinking in {False, "minimal"}
        asked["thinking"] = ("answer without thinking" if off else "think", replace(alone, thinking=need.thinking))
    if need.tools:
        asked["tools"] = ("call tools", replace(alone, tools=True))
    if need.web_search:
        asked["web_search"] = ("search the web", replace(alone, web_search=True))
    if need.structured:
        asked["response_format"] = ("be held to JSON", replace(alone, structured=True))
    if need.temperature:
        asked["temperature"] = ("be given a temperature", replace(alone, temperature=True))
    if need.max_tokens is not None:
        asked["max_tokens"] = (f"answer with {need.max_tokens:,} tokens", replace(alone, max_tokens=need.max_tokens))
    return asked


def _models(number: int) -> str:
    return f"{number} available model{'s' if number > 1 else ''}"
