"""One question, one completion: choose the model, fit the question to it, ask, and say what was left out."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ...protocol.errors import ProviderError
from ...providers import (
    Catalogue,
    Completion,
    CompletionRequest,
    Delta,
    ImagePart,
    Message,
    Model,
    OnDelta,
    TextPart,
    WebSearch,
    follow_up,
    functions_wanted,
)
from ..context import ToolContext
from ..conversation import Conversation, Turn
from .choosing import Choice, Need, cheapest, require_able, too_long, usable_models
from .fitting import ANSWER_TOKENS, Sizes, fit_to, room, sizes
from .question import AUTO, Asked, LeftOut, Question

MAX_COMPLETIONS: Final = 6
"""A model that still searches the web after so many is told to be at fault; each is paid for."""

_NOTICES: Final = {
    "length": "the answer was cut off at the token limit; raise max_tokens, or ask for less",
    "content_filter": "the vendor's content filter cut the answer off",
}
"""What ends an answer before its end."""


async def ask(question: Question, context: ToolContext, *, stream: bool = True) -> Asked:
    """Make one completion of the question; whoever reads along gets it as it comes, unless ``stream`` is false.

    Only a model of Kimi that searches the web takes a completion more for each search (``Asked.completions``).

    Raises:
        InvalidArgumentsError: the model is unknown, or cannot do what is asked; the message names models that can.
        ContextLengthExceededError: the question does not fit, even without what can be left out.
        CallError: what the vendor said, or ServiceUnavailableError where it is not configured.
    """
    daemon = context.daemon
    available = [provider["name"] for provider in daemon.providers() if provider["available"]]
    usable = usable_models(daemon.catalogue, available, dt.datetime.now(dt.UTC).date())
    name = question.model if question.model and available else daemon.default_model()
    size = await asyncio.to_thread(sizes, question)
    choice, request, left_out = prepare(question, size, name, daemon.catalogue, usable)
    context.progress(f"asking {choice.model.id}")

    def pass_on(delta: Delta) -> None:
        if delta.text:
            context.stream(delta.text)

    on_delta = pass_on if stream and context.streaming else None
    completion, number = await _complete(request, context, on_delta, choice.because)
    notice = _NOTICES.get(completion.finish_reason)
    return Asked(completion, choice.model, number, choice.because, left_out, (notice,) if notice else ())


async def ask_within(conversation: Conversation, question: Question, context: ToolContext, *, tool: str) -> Asked:
    """``ask`` with what was said in the conversation before; question and answer become its next turns."""
    told = replace(question, history=tuple(conversation.turns), cache_key=conversation.id)
    asked = await ask(told, context)
    files = tuple(file.name for file in question.files)
    conversation.add(Turn("user", question.prompt, tool=tool, files=files))
    conversation.add(Turn("assistant", asked.text, tool=tool, model=asked.completion.model))
    return asked


async def _complete(
    request: CompletionRequest, context: ToolContext, on_delta: OnDelta | None, because: str | None
) -> tuple[Completion, int]:
    """The answer, and how many completions it took: the vendor's built-in tools have theirs called again."""
    for number in range(1, MAX_COMPLETIONS + 1):
        completion = await context.complete(request, on_delta=on_delta, chosen_because=because)
        if functions_wanted(completion):  # of the caller's own, who has to answer them
            return completion, number
        messages = follow_up(request.messages, completion)
        if messages is None:
            return completion, number
        request = replace(request, messages=messages)
        context.progress(f"{request.model.id} searches the web", number)
    raise ProviderError(
        f"{request.model.id} searched the web {MAX_COMPLETIONS} times and gave no answer; ask for less at a time.",
        executed="yes",
    )


def prepare(
    question: Question, size: Sizes, name: str, catalogue: Catalogue, usable: Sequence[Model]
) -> tuple[Choice, CompletionRequest, tuple[LeftOut, ...]]:
    """The model, what it is asked, and what is left out of that. Pure.

    Raises:
        InvalidArgumentsError, ContextLengthExceededError: as ``ask``.
    """
    need = _need(question, size)
    if name.strip().lower() == AUTO:
        choice = cheapest(need, usable, answer_tokens=ANSWER_TOKENS, room=partial(room, question=question))
    else:
        choice = Choice(catalogue.resolve(name))
        require_able(choice.model, need, usable)
    fitted = fit_to(choice.model, question, size)
    if fitted is None:
        raise too_long(choice.model, need, usable)
    return choice, _request(fitted[0], choice.model, fitted[1]), fitted[1]


def _need(question: Question, size: Sizes) -> Need:
    return Need(
        tokens=size.all,
        max_tokens=question.max_tokens,
        images=bool(question.images),
        thinking=question.thinking,
        tools=bool(question.tools),
        web_search=question.web_search,
        structured=question.response_format is not None,
        temperature=question.temperature is not None,
    )


def _request(question: Question, model: Model, left_out: Sequence[LeftOut]) -> CompletionRequest:
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
        thinking=question.thinking,
        files=question.files,
        response_format=question.response_format,
        cache_key=question.cache_key,
    )


def _message(turn: Turn) -> Message:
    """A turn as the model is told of it, with the names of the files that went with it then."""
    text = f"{turn.text}\n\n(Files given with this: {', '.join(turn.files)}.)" if turn.files else turn.text
    return Message(turn.role, text)
