"""``embed``: embeddings of texts, in OpenAI's format. ``POST /v1/embeddings`` calls it."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import Field, PlainValidator, WithJsonSchema

from ...protocol.error_codes import InvalidArgumentsError
from ...providers import MAX_INPUTS, EmbeddingRequest, Embeddings, Encoding, Model, VendorObjectNotFoundError
from ..completions import (
    AUTO,
    MAX_FALLBACKS,
    ModelChoice,
    asking,
    attempts_data,
    available_models,
    either,
    first_answer,
    select_models,
    unlisted_model,
)
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext
from .chat import TIMEOUT_S

_SUGGESTIONS: Final = 5
"""The maximum number of models that an error names."""
_LARGEST_TOKEN: Final = 2**31 - 1
"""The vendors' tokens are 32-bit numbers."""

Inputs = tuple[str, ...] | tuple[tuple[int, ...], ...]


def read_inputs(value: Any) -> Inputs:
    """Returns the texts, or the tokens of each text. A single text counts as a list of one.

    Raises:
        ValueError: the value is neither texts nor tokens; the message names the item.
    """
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(
            "is empty; it must have at least one text or list of tokens"
            if value in ([], ())
            else "must be a text, a list of texts, a list of tokens, or a list of lists of tokens"
        )
    if all(map(_is_token, value)):
        value = [value]
    if len(value) > MAX_INPUTS:
        raise ValueError(f"has {len(value):,} items, at most {MAX_INPUTS:,} are allowed; send several requests")
    texts = isinstance(value[0], str)
    for place, item in enumerate(value):
        if texts:
            problem = None if isinstance(item, str) else "is not a text like the first item"
        else:
            is_list = isinstance(item, list | tuple) and all(map(_is_token, item))
            problem = None if is_list else "is neither a text nor a list of tokens (integers from 0)"
        if problem is None and not item:
            problem = "is empty; an embedding needs content"
        if problem is not None:
            raise ValueError(f"item {place} {problem}")
    return tuple(value) if texts else tuple(map(tuple, value))


def _is_token(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_TOKEN


class EmbedArguments(Arguments):
    """A request in OpenAI's format (platform.openai.com/docs/api-reference/embeddings/create)."""

    input: Annotated[Inputs, PlainValidator(read_inputs), WithJsonSchema({"type": ["string", "array"]})] = Field(
        description=f"A text, or a list of up to {MAX_INPUTS:,}; or lists of tokens, if the vendor takes them."
    )
    model: str = Field(description="Id, alias or PROVIDER/MODEL of an embedding model (see listmodels).")
    dimensions: int | None = Field(default=None, ge=1, description="Numbers per embedding, if the model has a choice.")
    encoding_format: Encoding = Field(
        default="float", description="float: lists of numbers; base64: packed as little-endian 32-bit numbers."
    )
    fallback: Annotated[list[str], Field(max_length=MAX_FALLBACKS)] = Field(
        default=[],
        description="Models to ask if the first fails. Only the same model of another provider is comparable.",
    )


@tool("embed", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def embed(arguments: EmbedArguments, context: ToolContext) -> ToolOutput:
    """Make an embedding of each text, to compare, search or cluster texts by their meaning.

    Embeddings of different models cannot be compared, so no model is chosen for you. `structured.embeddings` are in
    the order of `input`.
    """

    def select(name: str) -> ModelChoice:
        model = _embedding_model(name, context)
        context.capabilities(model.provider)  # raises if the provider is not configured
        return ModelChoice(model)

    models = select_models(
        select(arguments.model), arguments.fallback, (), select
    )  # fallbacks of settings do not apply: decision 95

    async def attempt(choice: ModelChoice, _on_start: Callable[[], None] | None) -> tuple[ModelChoice, Embeddings]:
        model = choice.model
        request = EmbeddingRequest(model, arguments.input, arguments.dimensions, arguments.encoding_format)
        context.progress(asking(choice))
        try:
            return choice, await context.embed(request, model_choice_reason=choice.reason)
        except VendorObjectNotFoundError as error:
            raise unlisted_model(error, model, context.daemon.catalog) from error

    (choice, answer), failed = await first_answer(models, attempt, context)
    data = {
        "model": answer.model,
        "provider": choice.model.provider,
        "dimensions": answer.dimensions,
        "encoding_format": arguments.encoding_format,
        "embeddings": list(answer.vectors),
        **attempts_data(failed),
    }
    count = len(answer.vectors)
    return ToolOutput(
        f"{count:,} embedding{'s' if count > 1 else ''} with {answer.dimensions:,} dimensions from {answer.model}", data
    )


def _embedding_model(name: str, context: ToolContext) -> Model:
    """Returns the model with this name.

    Raises:
        InvalidArgumentsError: the model is unknown, or makes no embeddings; the message names models that do.
    """
    if name.strip().lower() == AUTO:
        problem = "auto cannot be used here, because embeddings of different models cannot be compared"
    else:
        model = context.daemon.catalog.resolve(name)
        if model.kind != "chat":
            return model
        problem = f"{model.id} makes completions, not embeddings"
    names = [model.id for model in available_models(context.daemon, kind="embedding")][:_SUGGESTIONS]
    advice = f"use an embedding model: {either(names)}" if names else "no configured provider is known to have one"
    raise InvalidArgumentsError(f"model: {problem}; {advice}.", details={"fields": {"model": problem}, "models": names})
