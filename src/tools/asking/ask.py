"""One question, one completion: choose the model, fit the question to it, ask, and say what was left out."""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from typing import Final

from ...providers import Catalogue, CompletionRequest, Delta, ImagePart, Message, Model, TextPart
from ..context import ToolContext
from ..conversation import Turn
from .choosing import Choice, Need, cheapest, require_able, too_long, usable_models
from .fitting import ANSWER_TOKENS, Sizes, fit_to, room, sizes
from .question import AUTO, Asked, LeftOut, Question

_NOTICES: Final = {
    "length": "the answer was cut off at the token limit; raise max_tokens, or ask for less",
    "content_filter": "the vendor's content filter cut the answer off",
}
"""What ends an answer before its end."""


async def ask(question: Question, context: ToolContext, *, stream: bool = True) -> Asked:
    """Make one completion of the question; whoever reads along gets it as it comes, unless ``stream`` is false.

    Raises:
        InvalidArgumentsError: the model is unknown, or cannot do what is asked; the message names models that can.
        ContextLengthExceededError: the question does not fit, even without what can be left out.
        CallError: what the vendor said, or ServiceUnavailableError where it is not configured.
    """
    daemon = context.daemon
    available = [provider["name"] for provider in daemon.providers() if provider["available"]]
    usable = usable_models(daemon.catalogue, available, dt.datetime.now(dt.UTC).date())
    name = question.model or daemon.default_model()
    if not usable:
        daemon.default_model()  # raises, and says what to set
    choice, request, left_out = prepare(question, name, daemon.catalogue, usable)
    context.progress(f"asking {choice.model.id}")

    def pass_on(delta: Delta) -> None:
        if delta.text:
            context.stream(delta.text)

    completion = await context.complete(request, on_delta=pass_on if stream and context.streaming else None)
    notice = _NOTICES.get(completion.finish_reason)
    return Asked(completion, choice.model, choice.because, left_out, (notice,) if notice else ())


def prepare(
    question: Question, name: str, catalogue: Catalogue, usable: Sequence[Model]
) -> tuple[Choice, CompletionRequest, tuple[LeftOut, ...]]:
    """The model, what it is asked, and what is left out of that. Pure.

    Raises:
        InvalidArgumentsError, ContextLengthExceededError: as ``ask``.
    """
    size = sizes(question)
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
        tools=question.tools,
        thinking=question.thinking,
        files=question.files,
    )


def _message(turn: Turn) -> Message:
    """A turn as the model is told of it, with the names of the files that went with it then."""
    text = f"{turn.text}\n\n(Files given with this: {', '.join(turn.files)}.)" if turn.files else turn.text
    return Message(turn.role, text)
