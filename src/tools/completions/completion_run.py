"""One question, one completion: choose the model, fit the question to it, ask, and say what was left out."""

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ...providers import CompletionRequest, ImagePart, Message, Model, TextPart, WebSearch
from ..conversation import Conversation, Turn
from ..tool_context import ToolContext
from .completion_loop import complete
from .context_window import ANSWER_TOKENS, PromptSizes, fit_to, room, sizes
from .model_question import ModelQuestion, OmittedContent, QuestionResult
from .model_selection import ModelChoice, ModelRequirements, choose, nearest, too_long, usable_models
from .vendor_token_count import counted, near


async def ask(question: ModelQuestion, context: ToolContext, *, stream: bool = True) -> QuestionResult:
    """Make one completion of the question; whoever reads along gets it as it comes, unless ``stream`` is false.

    Only a model of Kimi that searches the web takes a completion more for each search
    (``QuestionResult.completions``). Where
    the error of the estimate would decide what fits, the vendor is asked for its count before.

    Raises:
        InvalidArgumentsError: the model is unknown, or cannot do what is asked; the message names models that can.
        ContextLengthExceededError: the question does not fit, even without what can be left out.
        CallError: what the vendor said, or ServiceUnavailableError where it is not configured.
    """
    choice, size, usable = await _chosen(question, context)
    model = choice.model
    if near(model, question, size):
        size = await counted(_request(question, model, ()), size, context)
    request, left_out = _fitted(question, size, model, usable)
    context.progress(f"asking {model.id}")
    rounds = await complete(request, context, chosen_because=choice.because, stream=stream)
    return QuestionResult(
        rounds.completion,
        model,
        rounds.number,
        choice.because,
        left_out,
        size.counted,
        thinking=request.thinking,
        thinking_wanted=question.thinking,
    )


async def ask_within(
    conversation: Conversation, question: ModelQuestion, context: ToolContext, *, tool: str
) -> QuestionResult:
    """``ask`` with what was said in the conversation before; question and answer become its next turns."""
    told = replace(question, history=tuple(conversation.turns), cache_key=conversation.id)
    asked = await ask(told, context)
    files = tuple(file.name for file in question.files)
    conversation.add(Turn("user", question.prompt, tool=tool, files=files))
    conversation.add(Turn("assistant", asked.text, tool=tool, model=asked.completion.model))
    return asked


async def prepared(
    question: ModelQuestion, context: ToolContext
) -> tuple[ModelChoice, CompletionRequest, tuple[OmittedContent, ...]]:
    """What ``ask`` would send by our own estimate, and to which model; and what is left out of it. Sends nothing.

    Raises:
        InvalidArgumentsError, ContextLengthExceededError, ServiceUnavailableError: as ``ask``.
    """
    choice, size, usable = await _chosen(question, context)
    return choice, *_fitted(question, size, choice.model, usable)


async def _chosen(question: ModelQuestion, context: ToolContext) -> tuple[ModelChoice, PromptSizes, tuple[Model, ...]]:
    """The model, the question's sizes, and all models that can be asked.

    Raises:
        InvalidArgumentsError, ServiceUnavailableError: as ``ask``.
    """
    size = await asyncio.to_thread(sizes, question)
    choice, usable = pick(question.model, _need(question, size), context, partial(room, question=question))
    return choice, size, usable


def pick(
    name: str | None, need: ModelRequirements, context: ToolContext, room: Callable[[Model], int]
) -> tuple[ModelChoice, tuple[Model, ...]]:
    """The model that answers where a caller gave this name, or none; and all models that can be asked.

    The one way for every tool from what its caller says of a model to that model (``choose`` has the rule).

    Raises:
        InvalidArgumentsError: as ``choose``.
        ServiceUnavailableError: the provider, or where none is needed any, is not configured.
    """
    daemon = context.daemon
    providers = daemon.providers()
    available = [row["name"] for row in providers if row["available"]]
    whole = [row["name"] for row in providers if row["lists_all"]]
    absent = [model.id for model in daemon.catalog.models if model.provider in whole and daemon.listed(model) is False]
    usable = usable_models(daemon.catalog, available, dt.datetime.now(dt.UTC).date(), absent=absent)
    if need.provider is not None:
        context.abilities(need.provider)  # raises where it is not configured
        default = daemon.catalog.default(need.provider).id
    else:
        default = daemon.default_model()
        if not available:
            context.abilities(daemon.catalog.resolve(default).provider)
    choice = choose(
        name if name and available else None,
        need,
        daemon.catalog,
        usable,
        default=default,
        answer_tokens=ANSWER_TOKENS,
        room=room,
        unlisted=[model.id for model in usable if daemon.listed(model) is False],
    )
    return choice, usable


def _fitted(
    question: ModelQuestion, size: PromptSizes, model: Model, usable: Sequence[Model]
) -> tuple[CompletionRequest, tuple[OmittedContent, ...]]:
    """What the model is asked, and what is left out of that. Pure.

    Raises:
        ContextLengthExceededError: as ``ask``.
    """
    fitted = fit_to(model, question, size)
    if fitted is None:
        raise too_long(model, _need(question, size), usable)
    return _request(fitted[0], model, fitted[1]), fitted[1]


def _need(question: ModelQuestion, size: PromptSizes) -> ModelRequirements:
    return ModelRequirements(
        tokens=size.all,
        max_tokens=question.max_tokens,
        images=bool(question.images),
        linked_images=any(image.startswith("https:") for image in question.images),
        thinking=question.thinking,
        tools=bool(question.tools),
        web_search=question.web_search,
        structured=question.response_format is not None,
        temperature=question.temperature is not None,
        provider=question.provider,
    )


def _request(question: ModelQuestion, model: Model, left_out: Sequence[OmittedContent]) -> CompletionRequest:
    prompt = question.prompt
    if left_out:
        prompt = f"{prompt}\n\n(Left out for lack of room: {'; '.join(part.what for part in left_out)}.)"
    asked: str | tuple[TextPart | ImagePart, ...] = prompt
    if question.images:
        asked = (TextPart(prompt), *map(ImagePart, question.images))
    system = (Message("system", question.system),) if question.system else ()
    return CompletionRequest(
        model=model,
        messages=(*system, *map(_message, question.history), Message("user", asked)),
        temperature=question.temperature,
        max_tokens=question.max_tokens,
        tools=(*question.tools, WebSearch()) if question.web_search else question.tools,
        thinking=nearest(model, question.thinking),
        files=question.files,
        response_format=question.response_format,
        cache_key=question.cache_key,
    )


def _message(turn: Turn) -> Message:
    """A turn as the model is told of it, with the names of the files that went with it then."""
    text = f"{turn.text}\n\n(Files given with this: {', '.join(turn.files)}.)" if turn.files else turn.text
    return Message(turn.role, text)
