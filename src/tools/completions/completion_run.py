"""``ask``: selects a model, fits the question into its context window, and makes the completion."""

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ...protocol.error_codes import ContextLengthExceededError, ProviderError
from ...providers import (
    CompletionRequest,
    ImagePart,
    Message,
    Model,
    ModelCatalog,
    ModelKind,
    TextPart,
    VendorObjectNotFoundError,
    WebSearch,
)
from ..conversation import Conversation, Turn
from ..model_question import AUTO, ModelQuestion, OmittedContent, QuestionResult
from ..provider_names import check_provider
from ..tool_context import DaemonView, ToolContext
from .answer_language import in_language
from .completion_loop import complete
from .context_window import ANSWER_TOKENS, PromptSizes, fit_to, max_prompt_tokens, prompt_sizes
from .earlier_files import earlier_files
from .failover import FailedAttempt, asking, first_answer, select_models
from .former_options import supported_question
from .model_selection import (
    ModelChoice,
    ModelRequirements,
    choose,
    either,
    nearest_thinking,
    too_long,
    usable_models,
)
from .vendor_token_count import needs_vendor_count, vendor_counted_sizes

SLOW_ATTEMPT_S: Final = 60.0
"""Longer attempts are announced. Models that think have a timeout of 120 or 300 s (models.toml)."""


async def ask(question: ModelQuestion, context: ToolContext, *, stream: bool = True) -> QuestionResult:
    """Makes one completion, and streams it to clients that support streaming unless ``stream`` is false.

    A Kimi model that searches the web needs one more completion per search (``QuestionResult.completions``). If the
    estimate is too inexact to decide what fits, the vendor counts the tokens first.

    Raises:
        InvalidArgumentsError: the model is unknown or does not support the question; the message names models that do.
        ContextLengthExceededError: the question does not fit, even without its optional parts.
        CallError: the vendor failed; ServiceUnavailableError if the provider is not configured.
    """
    question = in_language(supported_question(question, context), context.daemon.locale)
    choice, sizes, usable = await _select(question, context)
    models = _with_fallbacks(choice, question, sizes, context)

    async def attempt(choice: ModelChoice, on_start: Callable[[], None] | None) -> QuestionResult:
        return await _ask_model(question, choice, sizes, usable, context, stream=stream, on_start=on_start)

    result, failed = await first_answer(models, attempt, context)
    return replace(result, failed=tuple(attempt.as_data() for attempt in failed)) if failed else result


async def _ask_model(
    question: ModelQuestion,
    choice: ModelChoice,
    sizes: PromptSizes,
    usable: tuple[Model, ...],
    context: ToolContext,
    *,
    stream: bool,
    on_start: Callable[[], None] | None,
) -> QuestionResult:
    """Asks one model; raises as ``ask`` does."""
    model = choice.model
    if needs_vendor_count(model, question, sizes):
        sizes = await vendor_counted_sizes(_request(question, model, ()), sizes, context)
    request, omitted = _fitted_request(question, sizes, model, usable)
    context.progress(f"{asking(choice)}{waiting_time(model.timeout_s or 0, context.remaining())}")
    try:
        loop = await complete(request, context, model_choice_reason=choice.reason, stream=stream, on_start=on_start)
    except VendorObjectNotFoundError as error:
        raise unlisted_model(error, model, context.daemon.catalog) from error
    except ContextLengthExceededError as error:
        if model.context_window is not None:
            raise
        hint = f"toold does not know the window of {model.id}; set context_window in {model.setting} to omit what does"
        raise ContextLengthExceededError(f"{error.message} {hint} not fit.", details=error.details) from error
    return QuestionResult(
        loop.completion,
        model,
        loop.completions,
        choice.reason,
        omitted,
        sizes.counted,
        thinking=request.thinking,
        thinking_requested=question.thinking,
    )


def unlisted_model(error: VendorObjectNotFoundError, model: Model, catalog: ModelCatalog) -> ProviderError:
    """Returns the error for a model that its vendor does not have, with the names of similar ones that it lists."""
    names = _similar_names(model, catalog)
    if not names:
        return error
    hint = f"{error.message} The vendor lists {either(names)}."
    details = {**(error.details or {}), "suggestions": names}
    return ProviderError(hint, executed="no", details=details, summary=error.summary)


def _with_fallbacks(
    first: ModelChoice, question: ModelQuestion, sizes: PromptSizes, context: ToolContext
) -> list[ModelChoice | FailedAttempt]:
    """Returns the model and its fallbacks; raises as ``ask`` does."""
    requirements = replace(_requirements(question, sizes), provider=None)
    limit = partial(max_prompt_tokens, question=question)

    def select(name: str) -> ModelChoice:
        choice, _ = select_model(name, requirements, context, limit)
        context.capabilities(choice.model.provider)  # raises if the provider is not configured
        return choice

    # A question that requires a provider goes to no other provider, unless the call names fallbacks.
    requested = () if question.fallback is None and question.provider is not None else question.fallback
    configured = context.daemon.fallback(context.tool_name, first.model.provider)
    return select_models(first, requested, configured, select)


def waiting_time(attempt_s: float, remaining_s: float) -> str:
    """Returns the maximum duration of the answer of a model that thinks long; an empty text for other models."""
    if attempt_s < SLOW_ATTEMPT_S:
        return ""
    per_attempt = f", {attempt_s:.0f} s per attempt" if attempt_s < remaining_s else ""
    return f" (at most {remaining_s:.0f} s{per_attempt})"


async def ask_within(
    conversation: Conversation, question: ModelQuestion, context: ToolContext, *, tool: str, numbered: bool = False
) -> QuestionResult:
    """``ask`` with the conversation's earlier turns and their files. Adds question and answer to the conversation.

    The files are read again, in their current version, and sent if they fit; ``omitted`` has the others. ``numbered``
    is as for ``read_files``.
    """
    files = tuple(file.name for file in question.files)
    with_history, unread = await with_earlier_turns(question, conversation.turns, context, numbered=numbered)
    result = await ask(replace(with_history, cache_key=conversation.id), context)
    result = replace(result, omitted=(*result.omitted, *unread))
    conversation.add(Turn("user", question.prompt, tool=tool, files=files))
    conversation.add(Turn("assistant", result.text, tool=tool, model=result.completion.model))
    return result


async def with_earlier_turns(
    question: ModelQuestion, turns: Sequence[Turn], context: ToolContext, *, numbered: bool = False
) -> tuple[ModelQuestion, tuple[OmittedContent, ...]]:
    """The question with these turns and their files before it, which may be omitted; and the files that were not read.

    ``numbered`` is as for ``read_files``.
    """
    attached = {file.name for file in question.files}
    earlier, unread = await earlier_files(turns, attached, context, numbered=numbered)
    files = (*question.files, *earlier)
    return replace(question, files=files, optional_files=len(earlier), history=tuple(turns)), unread


async def prepared(
    question: ModelQuestion, context: ToolContext
) -> tuple[ModelChoice, CompletionRequest, tuple[OmittedContent, ...]]:
    """Returns the model, the request that ``ask`` would send by the estimate, and the omitted parts. Sends nothing.

    Raises:
        InvalidArgumentsError, ContextLengthExceededError, ServiceUnavailableError: as raised by ``ask``.
    """
    question = in_language(supported_question(question, context), context.daemon.locale)
    choice, sizes, usable = await _select(question, context)
    return choice, *_fitted_request(question, sizes, choice.model, usable)


async def _select(question: ModelQuestion, context: ToolContext) -> tuple[ModelChoice, PromptSizes, tuple[Model, ...]]:
    """Returns the model, the question's sizes, and all usable models.

    Raises:
        InvalidArgumentsError, ServiceUnavailableError: as raised by ``ask``.
    """
    sizes = await asyncio.to_thread(prompt_sizes, question)
    limit = partial(max_prompt_tokens, question=question)
    choice, usable = select_model(question.model, _requirements(question, sizes), context, limit)
    return choice, sizes, usable


def available_models(daemon: DaemonView, *, kind: ModelKind = "chat") -> tuple[Model, ...]:
    """Returns the models of this kind that calls can use now, according to the vendors' keys and lists."""
    providers = daemon.providers()
    complete_lists = [row["name"] for row in providers if row["lists_all"]]
    unavailable = [
        model.id
        for model in daemon.catalog.described_models
        if model.provider in complete_lists and daemon.listed(model) is False
    ]
    available = [row["name"] for row in providers if row["available"]]
    today = dt.datetime.now(dt.UTC).date()
    return usable_models(daemon.catalog, available, today, unavailable=unavailable, kind=kind)


def select_model(
    name: str | None,
    requirements: ModelRequirements,
    context: ToolContext,
    max_prompt_tokens: Callable[[Model], int],
) -> tuple[ModelChoice, tuple[Model, ...]]:
    """Selects the model for the caller's ``model`` argument, and returns it with all usable models.

    All tools select models with this function; ``choose`` defines the rule.

    Raises:
        InvalidArgumentsError: as raised by ``choose``, or the required provider is unknown.
        ServiceUnavailableError: the required provider, or every provider, is not configured.
    """
    daemon = context.daemon
    providers = daemon.providers()
    available = [row["name"] for row in providers if row["available"]]
    usable = available_models(daemon)
    if requirements.provider is not None:
        check_provider(requirements.provider, [row["name"] for row in providers])
        context.capabilities(requirements.provider)  # raises if the provider is not configured
        default = daemon.catalog.default(requirements.provider).id
    else:
        default = AUTO if name and available else daemon.default_model()
        if not available:
            context.capabilities(daemon.catalog.resolve(default).provider)
    choice = choose(
        name if name and available else None,
        # Earlier servers ignored the depth when they chose a model. Models with more depths cost more.
        replace(requirements, exact_depth=not context.former_client),
        daemon.catalog,
        usable,
        default=default,
        answer_tokens=ANSWER_TOKENS,
        max_prompt_tokens=max_prompt_tokens,
        unlisted=[model.id for model in usable if daemon.listed(model) is False],
    )
    return choice, usable


def _fitted_request(
    question: ModelQuestion, sizes: PromptSizes, model: Model, usable: Sequence[Model]
) -> tuple[CompletionRequest, tuple[OmittedContent, ...]]:
    """Returns the request fitted to the model, and the omitted parts. Pure.

    Raises:
        ContextLengthExceededError: as raised by ``ask``.
    """
    fitted = fit_to(model, question, sizes)
    if fitted is None:
        raise too_long(model, _requirements(question, sizes), usable)
    return _request(fitted[0], model, fitted[1]), fitted[1]


def _similar_names(model: Model, catalog: ModelCatalog) -> list[str]:
    """Returns the full names of similar models that the configured provider of this model lists."""
    holder = catalog.open_providers.get(model.provider)
    return [] if holder is None else holder.similar(model.sent_id)


def _requirements(question: ModelQuestion, sizes: PromptSizes) -> ModelRequirements:
    return ModelRequirements(
        tokens=max(0, sizes.total - sum(sizes.files[len(question.files) - question.optional_files :])),
        max_tokens=question.max_tokens,
        images=bool(question.images),
        image_urls=any(image.startswith("https:") for image in question.images),
        thinking=question.thinking,
        tools=bool(question.tools),
        web_search=question.web_search,
        structured=question.response_format is not None,
        temperature=question.temperature is not None,
        provider=question.provider,
    )


def _request(question: ModelQuestion, model: Model, omitted: Sequence[OmittedContent]) -> CompletionRequest:
    prompt = question.prompt
    if omitted:
        prompt = f"{prompt}\n\n(Omitted for lack of space: {'; '.join(part.what for part in omitted)}.)"
    content: str | tuple[TextPart | ImagePart, ...] = prompt
    if question.images:
        content = (TextPart(prompt), *map(ImagePart, question.images))
    system = (Message("system", question.system),) if question.system else ()
    return CompletionRequest(
        model=model,
        messages=(*system, *map(_message, question.history), Message("user", content)),
        temperature=question.temperature,
        max_tokens=question.max_tokens,
        tools=(*question.tools, WebSearch()) if question.web_search else question.tools,
        tool_choice=question.tool_choice,
        thinking=nearest_thinking(model, question.thinking),
        files=question.files,
        response_format=question.response_format,
        cache_key=question.cache_key,
    )


def _message(turn: Turn) -> Message:
    """Converts a turn to a message that also names the files attached to the turn."""
    text = f"{turn.text}\n\n(Attached files: {', '.join(turn.files)}.)" if turn.files else turn.text
    return Message(turn.role, text)
