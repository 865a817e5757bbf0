"""Model selection: the named model, the default model, or the cheapest suitable one. Pure."""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ...protocol.error_codes import ContextLengthExceededError, InvalidArgumentsError
from ...providers import Depth, Model, ModelCatalog, ModelKind, ModelPrice
from ..model_question import AUTO

_MAX_SUGGESTIONS: Final = 5
"""The maximum number of models that an error names."""


@dataclass(frozen=True, slots=True)
class ModelRequirements:
    """What a question requires of its model."""

    tokens: int
    """Estimated tokens of the prompt."""
    max_tokens: int | None = None
    """Maximum tokens of the answer, if limited."""
    images: bool = False
    image_urls: bool = False
    """Whether any image is an ``https:`` URL."""
    thinking: bool | Depth | None = None
    exact_depth: bool = True
    """Whether models with exactly the requested thinking depth precede those with a near depth."""
    tools: bool = False
    web_search: bool = False
    structured: bool = False
    """Whether the answer must be JSON."""
    temperature: bool = False
    """Whether the caller sets a temperature."""
    provider: str | None = None
    """The required provider, or None for any."""

    @property
    def window(self) -> int:
        """The tokens of prompt and answer, as far as they are known."""
        return self.tokens + (self.max_tokens or 0)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, and why it was chosen if the caller did not name it."""

    model: Model
    reason: str | None = None


def usable_models(
    catalog: ModelCatalog,
    providers: Iterable[str],
    today: dt.date,
    *,
    unavailable: Collection[str] = (),
    kind: ModelKind = "chat",
) -> tuple[Model, ...]:
    """Returns the providers' models of this kind that are neither retired nor in ``unavailable`` (model ids). Models
    of an unknown kind count as ``chat``.
    """
    allowed = set(providers)
    return tuple(
        model
        for model in catalog.described_models
        if model.provider in allowed
        and (model.kind == "embedding") == (kind == "embedding")
        and model.id not in unavailable
        and (model.retired is None or model.retired > today)
    )


def unsupported(model: Model, requirements: ModelRequirements) -> tuple[str, str] | None:
    """Returns the first argument that the model does not support, and why; None if it supports all."""
    if problem := _other_kind(model, requirements):
        return "model", problem
    if requirements.images and "image" not in model.inputs:
        return "images", f"{model.id} does not accept images"
    if requirements.image_urls and not model.image_urls:
        return "images", f"{model.id} accepts image data but no image URLs"
    if problem := _unsupported_thinking(model, requirements):
        return "thinking", problem
    if requirements.tools and not model.tools:
        return "tools", f"{model.id} cannot call tools"
    if requirements.web_search and not model.web_search:
        return "web_search", f"{model.id} cannot search the web"
    if requirements.structured and model.structured == "none":
        return "response_format", f"{model.id} does not support JSON output"
    if requirements.temperature and model.fixed_temperature:
        return "temperature", f"{model.id} has a fixed temperature"
    limit = model.max_output
    if requirements.max_tokens is not None and limit is not None and requirements.max_tokens > limit:
        return "max_tokens", f"{model.id} answers with at most {limit:,} tokens, not {requirements.max_tokens:,}"
    return None


def _other_kind(model: Model, requirements: ModelRequirements) -> str | None:
    if model.kind == "embedding":
        return f"{model.id} makes embeddings, not completions"
    if requirements.provider not in {None, model.provider}:
        return f"{model.id} is a {model.provider} model; the call requires {requirements.provider}"
    return None


def _unsupported_thinking(model: Model, requirements: ModelRequirements) -> str | None:
    requested = requirements.thinking
    if requested is True and model.thinking == "none":
        return f"{model.id} does not think"
    if requested is False and model.thinking == "always":
        return f"{model.id} always thinks"
    if isinstance(requested, str) and model.nearest_depth(requested) is None:
        return f"{model.id} does not think" if model.thinking == "none" else _depths(model, requested)
    if requested not in {None, False, "minimal"} and requirements.web_search and model.search_excludes_thinking:
        return f"{model.id} cannot think during a web search"
    return None


def _depths(model: Model, requested: bool | Depth | None) -> str:
    return f"{model.id} supports thinking {either(model.depths)}, not {requested}"


def has_exact_depth(model: Model, thinking: bool | Depth | None) -> bool:
    """Whether the model supports exactly the requested thinking depth, if one is requested."""
    return not isinstance(thinking, str) or thinking in model.depths


def nearest_thinking(model: Model, thinking: bool | Depth | None) -> bool | Depth | None:
    """Returns the model's nearest equivalent of the requested thinking."""
    return model.nearest_depth(thinking) if isinstance(thinking, str) else thinking


def _fits_window(model: Model, requirements: ModelRequirements) -> bool:
    """Whether prompt and answer fit into the model's window, as far as its size is known."""
    return model.context_window is not None and model.context_window >= requirements.window


def require_support(model: Model, requirements: ModelRequirements, usable: Sequence[Model]) -> None:
    """Checks that a model meets the requirements.

    Raises:
        InvalidArgumentsError: it does not; the message names models that do.
    """
    problem = unsupported(model, requirements)
    if problem is None:
        return
    field, why = problem
    suitable = [other for other in usable if unsupported(other, requirements) is None]
    names = [other.id for other in suitable if _fits_window(other, requirements)][:_MAX_SUGGESTIONS]
    advice = f"use a model that does: {either(names)}" if names else "no available model does"
    if model.setting is not None:
        advice += f"; if {model.id} does, the operator says so in {model.setting}"
    raise InvalidArgumentsError(f"{field}: {why}; {advice}.", details={"fields": {field: why}, "models": names})


def too_long(model: Model, requirements: ModelRequirements, usable: Sequence[Model]) -> ContextLengthExceededError:
    """Returns the error for a prompt that does not fit. It names the models that it fits, smallest window first."""
    fitting = sorted(
        (other for other in usable if _fits_window(other, requirements) and unsupported(other, requirements) is None),
        key=lambda other: other.context_window or 0,
    )
    names = [other.id for other in fitting[:_MAX_SUGGESTIONS] if other is not model]
    answer = f" and {requirements.max_tokens:,} for the answer" if requirements.max_tokens else ""
    advice = (
        f"use a model with a larger window: {either(names)}"
        if names
        else "send less; no available model has a large enough window"
    )
    window = "unknown" if model.context_window is None else f"{model.context_window:,} tokens"
    return ContextLengthExceededError(
        f"The request has about {requirements.tokens:,} tokens{answer}; the context window of {model.id} is "
        f"{window}; {advice}.",
        details={
            "estimated_tokens": requirements.tokens,
            "max_tokens": requirements.max_tokens,
            "context_window": model.context_window,
            "models": names,
        },
    )


def choose(
    name: str | None,
    requirements: ModelRequirements,
    catalog: ModelCatalog,
    usable: Sequence[Model],
    *,
    default: str,
    answer_tokens: int,
    max_prompt_tokens: Callable[[Model], int],
    unlisted: Collection[str] = (),
) -> ModelChoice:
    """Returns the model with this name, even if its vendor does not list it; for ``AUTO``, the ``cheapest``.

    Without a name it returns the ``default`` model (which may be ``AUTO``) if that meets the requirements, else the
    ``cheapest``, of the same vendor if possible. If the default model has only a near thinking depth, a model of the
    same vendor with exactly the requested depth precedes it. The window does not matter here: parts that do not fit are
    omitted later.

    Raises:
        InvalidArgumentsError: the name is unknown, the named model does not meet the requirements, or no model does.
    """
    cheapest_for = partial(
        cheapest, usable=usable, answer_tokens=answer_tokens, max_prompt_tokens=max_prompt_tokens, unlisted=unlisted
    )
    if name is None and default == AUTO:
        name = AUTO
    if name is None:
        model = catalog.resolve(default)
        same_vendor = replace(requirements, provider=requirements.provider or model.provider)
        problem = unsupported(model, requirements)
        if problem is not None:
            why = problem[1]
        elif has_exact_depth(model, requirements.thinking) or not _with_exact_depth(usable, same_vendor):
            return ModelChoice(model)
        else:
            why = _depths(model, requirements.thinking)
        vendor_suffices = any(unsupported(other, same_vendor) is None for other in usable)
        choice = cheapest_for(same_vendor if vendor_suffices else requirements)
        return replace(choice, reason=f"{choice.reason}; not the default model: {why}")
    if name.strip().lower() == AUTO:
        return cheapest_for(requirements)
    model = catalog.resolve(name)
    require_support(model, requirements, usable)
    return ModelChoice(model)


def cheapest(
    requirements: ModelRequirements,
    usable: Sequence[Model],
    *,
    answer_tokens: int,
    max_prompt_tokens: Callable[[Model], int],
    unlisted: Collection[str] = (),
) -> ModelChoice:
    """Returns the model for ``AUTO``: the cheapest for this call among those that are suitable and large enough.

    Models with exactly the requested thinking depth precede those with a near depth.

    An answer without a limit counts as ``answer_tokens``. Models without a known price come last; the catalog's order
    breaks ties. If no model is large enough, the one with the largest window is returned, and optional parts of the
    question are omitted later. Models that their vendor does not list (``unlisted``, ids) are a last resort.

    Raises:
        InvalidArgumentsError: no usable model meets the requirements.
    """
    suitable = [model for model in usable if unsupported(model, requirements) is None]
    if not suitable:
        raise _none_suitable(requirements, usable)
    suitable = [model for model in suitable if model.id not in unlisted] or suitable
    fitting = [model for model in suitable if max_prompt_tokens(model) >= requirements.tokens]
    if not fitting:
        largest = max(suitable, key=max_prompt_tokens)
        return ModelChoice(largest, f"it has the largest window of the {_models(len(suitable))} that are suitable")
    fitting = _with_exact_depth(fitting, requirements) or fitting
    if len(fitting) == 1:
        return ModelChoice(fitting[0], "it is the only available model that is suitable and large enough")
    output = answer_tokens if requirements.max_tokens is None else requirements.max_tokens
    best = min(fitting, key=lambda model: _dollars(model.price, requirements.tokens, output))
    ranked = "the cheapest" if best.price else "the first"
    return ModelChoice(best, f"it is {ranked} of the {_models(len(fitting))} that are suitable and large enough")


def _with_exact_depth(models: Sequence[Model], requirements: ModelRequirements) -> list[Model]:
    """Returns the suitable models with exactly the requested thinking depth; none if they are not preferred."""
    if not requirements.exact_depth:
        return []
    return [
        model
        for model in models
        if unsupported(model, requirements) is None and has_exact_depth(model, requirements.thinking)
    ]


def either(names: Sequence[str], word: str = " or ") -> str:
    return word.join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


def _dollars(price: ModelPrice | None, tokens: int, answer: int) -> float:
    return float("inf") if price is None else price.dollars(tokens, answer)


def _none_suitable(requirements: ModelRequirements, usable: Sequence[Model]) -> InvalidArgumentsError:
    """Names each requirement that no model meets. If every requirement is met by some model, names all, and reports the
    requirement that most models fail as the wrong field.
    """
    usable = [model for model in usable if requirements.provider in {None, model.provider}]
    single = _single_requirements(requirements)
    unmet = [field for field, (_, alone) in single.items() if all(unsupported(model, alone) for model in usable)]
    reasons = unmet[:1] or [problem[0] for model in usable if (problem := unsupported(model, requirements))]
    field = max(reasons, key=reasons.count) if reasons else "model"
    phrases = [single[name][0] for name in unmet or single] or ["be used"]
    together = " together" if len(phrases) > 1 and not unmet else ""
    problem_text = f"no available model can {either(phrases, ' or ' if unmet else ' and ')}{together}"
    return InvalidArgumentsError(
        f"{field}: {problem_text}; change the request.", details={"fields": {field: problem_text}, "models": []}
    )


def _single_requirements(requirements: ModelRequirements) -> dict[str, tuple[str, ModelRequirements]]:
    """Maps the argument of each requirement to a phrase for errors, and to requirements that contain only this one."""
    alone = ModelRequirements(requirements.tokens, provider=requirements.provider)
    single: dict[str, tuple[str, ModelRequirements]] = {}
    if requirements.images:
        phrase = "accept image URLs" if requirements.image_urls else "accept images"
        single["images"] = (phrase, replace(alone, images=True, image_urls=requirements.image_urls))
    if requirements.thinking is not None:
        off = requirements.thinking in {False, "minimal"}
        phrase = "answer without thinking" if off else "think"
        single["thinking"] = (phrase, replace(alone, thinking=requirements.thinking))
    if requirements.tools:
        single["tools"] = ("call tools", replace(alone, tools=True))
    if requirements.web_search:
        single["web_search"] = ("search the web", replace(alone, web_search=True))
    if requirements.structured:
        single["response_format"] = ("produce JSON output", replace(alone, structured=True))
    if requirements.temperature:
        single["temperature"] = ("accept a temperature", replace(alone, temperature=True))
    if requirements.max_tokens is not None:
        phrase = f"answer with {requirements.max_tokens:,} tokens"
        single["max_tokens"] = (phrase, replace(alone, max_tokens=requirements.max_tokens))
    return single


def _models(number: int) -> str:
    return f"{number} available model{'s' if number > 1 else ''}"
