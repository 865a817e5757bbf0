"""``chat``: one question to one model, with files and images."""

import datetime as dt
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from pydantic import Field

from ..protocol.errors import InvalidArgumentsError, NotFoundError, PermissionDeniedError
from ..providers import AttachedFile, Completion, CompletionRequest, Delta, ImagePart, Message, Model, TextPart
from .context import ToolContext
from .model_fit import estimate_tokens, require_abilities, require_room, texts_of, usable_models
from .tool import Answer, Arguments, tool

TIMEOUT_S: Final = 330.0
"""A long-thinking model may take 300 s for one attempt (models.toml), and waiting for the provider counts too."""

_MAX_FILES: Final = 64
_MAX_IMAGES: Final = 16

_NOTICES: Final = {
    "length": "the answer was cut off at the token limit; raise max_tokens, or ask for less",
    "content_filter": "the vendor's content filter cut the answer off",
}
"""What ends an answer before its end."""

T = TypeVar("T")


class ChatArguments(Arguments):
    """A question, and what goes with it."""

    prompt: str = Field(min_length=1, description="The question.")
    system: str | None = Field(default=None, description="Instructions that stand above the question.")
    model: str | None = Field(default=None, description="A model's id or alias (see listmodels); else the default one.")
    files: list[str] = Field(
        default=[],
        max_length=_MAX_FILES,
        description="Paths of text files below the workspace to put before the question.",
    )
    images: list[str] = Field(
        default=[],
        max_length=_MAX_IMAGES,
        description="Paths below the workspace (PNG, JPEG, WebP, GIF), or https: or data:image/ URLs.",
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="0 is most predictable.")
    thinking: bool | None = Field(
        default=None, description="Whether to reason before answering, where it can be chosen."
    )
    max_tokens: int | None = Field(default=None, ge=1, description="Bound on the answer, reasoning included.")


@tool("chat", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def chat(arguments: ChatArguments, context: ToolContext) -> Answer:
    """Ask a Kimi or GLM model, with text files and images from the workspace if given.

    The text of the answer is the model's own words; `structured` says which model answered and how it ended.
    """
    catalogue = context.daemon.catalogue
    model = catalogue.resolve(arguments.model or context.daemon.default_model())
    available = [provider["name"] for provider in context.daemon.providers() if provider["available"]]
    usable = usable_models(catalogue, available, dt.datetime.now(dt.UTC).date())
    require_abilities(model, usable, images=bool(arguments.images), thinking=arguments.thinking)
    request = await _request(arguments, model, context)
    require_room(
        model,
        usable,
        tokens=estimate_tokens([*texts_of(request.messages), *(file.text for file in request.files)]),
        max_tokens=arguments.max_tokens,
        images=bool(arguments.images),
    )
    context.progress(f"asking {model.id}")

    def pass_on(delta: Delta) -> None:
        if delta.text:
            context.stream(delta.text)

    completion = await context.complete(request, on_delta=pass_on if context.streaming else None)
    return _answer(completion, model)


async def _request(arguments: ChatArguments, model: Model, context: ToolContext) -> CompletionRequest:
    files = context.files.starting_at(context.client.workspace)

    async def image_url(image: str) -> str:
        return image if image.startswith(("https:", "data:image/")) else await files.read_image(image)

    texts = await _each("files", arguments.files, files.read_text)
    images = await _each("images", arguments.images, image_url)
    question: str | tuple[TextPart | ImagePart, ...] = arguments.prompt
    if images:
        question = (TextPart(arguments.prompt), *map(ImagePart, images))
    system = (Message("system", arguments.system),) if arguments.system else ()
    return CompletionRequest(
        model=model,
        messages=(*system, Message("user", question)),
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
        thinking=arguments.thinking,
        files=tuple(AttachedFile(file.name, file.text) for file in texts),
    )


async def _each(field: str, paths: Sequence[str], read: Callable[[str], Awaitable[T]]) -> list[T]:
    """What ``read`` makes of each path; an error says which of the field's items it is about."""
    results = []
    for index, path in enumerate(paths):
        try:
            results.append(await read(path))
        except (InvalidArgumentsError, NotFoundError, PermissionDeniedError) as error:
            details = {"fields": {f"{field}.{index}": error.message}}
            raise type(error)(f"{field}.{index}: {error.message}", details=details) from error
    return results


def _answer(completion: Completion, model: Model) -> Answer:
    notice = _NOTICES.get(completion.finish_reason)
    data: dict[str, Any] = {
        "model": completion.model,
        "provider": model.provider,
        "finish_reason": completion.finish_reason,
    }
    if notice:
        data["notice"] = notice
    if completion.reasoning:
        data["reasoning"] = completion.reasoning
    # A plain client sees the text alone: where there is none, it must at least read why.
    return Answer(completion.text or f"({model.id} gave no words: {notice or completion.finish_reason})", data)
