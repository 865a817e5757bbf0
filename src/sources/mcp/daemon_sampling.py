"""Completions for a server, made by the daemon's models as a child call of the call that the server executes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pydantic import Field

from ...protocol.error_codes import CallError, ToolExecutionError
from ...protocol.questions.client_question import ClientQuestion, QuestionRefusedError
from ...protocol.tool_call import Annotations, Json
from ...tools import (
    AUTO,
    OWN_SOURCE,
    Arguments,
    LookupContext,
    ModelQuestion,
    Tool,
    ToolContext,
    ToolOutput,
    Turn,
    ask,
    available_models,
)

_TIMEOUT_S: Final = 600.0
"""The timeout of a completion. The completion ends earlier if the server's call ends."""
MAX_SAMPLED_TOKENS: Final = 32_768
"""The maximum tokens of an answer. A server may ask for more, but long answers are expensive."""
_STOP_REASONS: Final[Mapping[str, str]] = {"stop": "endTurn", "length": "maxTokens"}


class SamplingArguments(Arguments):
    """A server's request for a completion, in MCP's format."""

    params: dict[str, Any] = Field(description="The parameters of sampling/createMessage.")


def sampling_tool(source: str) -> Tool:
    """Returns the tool of the child call. The source's daily budget has the tool's name."""
    annotations = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
    name, about = f"sampling_{source}", f"Ask a model for the source {source}."
    return Tool(name, about, SamplingArguments, _complete, annotations, timeout_s=_TIMEOUT_S, source=OWN_SOURCE)


async def sampled(
    question: ClientQuestion, context: ToolContext, budget: Mapping[str, float], number: int
) -> dict[str, Json]:
    """Returns a model's answer.

    Raises:
        QuestionRefusedError: there is no answer.
    """
    if question.kind != "sampling":
        what = f"{question.source} asked for a completion with tools, which the daemon does not make."
        raise QuestionRefusedError(what)
    params = {name: value for name, value in question.params.items() if name != "_meta"}
    failed = f"{question.source} asked for a completion, which failed"
    try:
        # Each context is a LookupContext.
        result = await cast("LookupContext", context).call_hidden(
            sampling_tool(question.source), {"params": params}, name=f"sampling-{number}", daily_budget=budget
        )
    except CallError as error:
        raise QuestionRefusedError(f"{failed}: {error.message}") from None
    if result.error is not None or not isinstance(result.structured, dict):
        reason = "" if result.error is None else result.error.message
        raise QuestionRefusedError(f"{failed}: {reason}")
    return dict(result.structured)


async def _complete(arguments: SamplingArguments, context: ToolContext) -> ToolOutput:
    params = arguments.params
    *earlier, last = [_read(message) for message in params["messages"]]
    role, prompt, images = last
    if role != "user":
        raise ToolExecutionError.content_free("The last message must be the user's.")
    history = tuple(Turn(turn_role, text) for turn_role, text, _ in earlier)
    model_ids = [model.id for model in available_models(context.daemon)]
    question = ModelQuestion(
        prompt,
        system=params.get("systemPrompt"),
        model=preferred_model(params.get("modelPreferences"), model_ids),
        images=images,
        history=history,
        temperature=params.get("temperature"),
        max_tokens=min(params["maxTokens"], MAX_SAMPLED_TOKENS),
    )
    result = await ask(question, context)
    text = result.completion.text
    answer = {
        "role": "assistant",
        "content": {"type": "text", "text": text},
        "model": result.completion.model,
        "stopReason": _STOP_REASONS.get(result.completion.finish_reason, result.completion.finish_reason),
    }
    return ToolOutput(text, answer)


def preferred_model(preferences: object, model_ids: Sequence[str]) -> str | None:
    """Returns the model that a server prefers: the first available one that a hint names, else the cheapest if cost or
    speed matters more than intelligence, else None, for the default model. Pure.
    """
    wanted = preferences if isinstance(preferences, Mapping) else {}
    hints = wanted.get("hints")
    for hint in hints if isinstance(hints, list) else ():
        name = hint.get("name") if isinstance(hint, Mapping) else None
        if isinstance(name, str) and name:
            named = [model_id for model_id in model_ids if name.lower() in model_id.lower()]
            if named:
                return min(named, key=len)
    cheap = max(_weight(wanted, "costPriority"), _weight(wanted, "speedPriority"))
    return AUTO if cheap > _weight(wanted, "intelligencePriority") else None


def _weight(preferences: Mapping[str, Any], name: str) -> float:
    value = preferences.get(name)
    return min(max(value, 0.0), 1.0) if isinstance(value, int | float) else 0.0


def _read(message: Mapping[str, Any]) -> tuple[Any, str, tuple[str, ...]]:
    """The role, the text and the images of a message.

    Raises:
        ToolExecutionError: the message has other content.
    """
    content = message["content"]
    texts: list[str] = []
    images: list[str] = []
    for block in content if isinstance(content, list) else [content]:
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "image", "data": str(data), "mimeType": str(kind)}:
                images.append(f"data:{kind};base64,{data}")
            case _:
                raise ToolExecutionError.content_free("The daemon's models accept only texts and images.")
    return message["role"], "\n".join(texts), tuple(images)
