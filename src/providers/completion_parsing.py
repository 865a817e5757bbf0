"""Parses a vendor's response, whole or in chunks, into the neutral completion. Pure.

All vendors use OpenAI's format. Reasoning is in ``reasoning_content`` or ``reasoning`` next to ``content``; Mistral's
``content`` is a list of parts, some of which are reasoning.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..protocol.tool_call import Cost, Usage
from .completion import Completion, Delta, FinishReason, SearchResult, ToolInvocation
from .model import Model
from .response_values import InvalidResponseError, as_list, as_mapping, as_text
from .tool_call_assembly import ToolCallAssembly
from .usage_parsing import dollars, read_usage, usage_of_chunk

_FINISH: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "model_context_window_exceeded": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}
"""Maps the vendors' finish reasons to neutral ones. ``sensitive`` and ``model_context_window_exceeded`` are GLM's,
``model_length`` is Mistral's.
"""
_INTERRUPTED: Final = frozenset({"network_error", "error", "insufficient_system_resource"})
"""Finish reasons of failed answers: those of GLM, of OpenRouter and Mistral, and of DeepSeek."""

SIMULATED: Final = "simulated"
"""The field that marks the simulator's responses. Vendors do not use it."""


class InterruptedAnswerError(Exception):
    """The answer ended prematurely."""


class FilteredError(Exception):
    """The vendor withheld the whole answer as unsafe."""


def read_answer(document: Any, model: Model, *, cost_in_usage: bool = False) -> Completion:
    """Parses a whole response. ``cost_in_usage``: ``usage.cost`` is the cost in dollars.

    Raises:
        InvalidResponseError, InterruptedAnswerError, FilteredError: see ``finished``.
    """
    choice = _first_choice(document)
    if choice is None:
        raise InvalidResponseError("the choices are missing")
    message = as_mapping(choice.get("message"), "choices[0].message")
    text, reasoning = _texts(message)
    calls = ToolCallAssembly()
    for call in as_list(message.get("tool_calls")):
        calls.add(call)
    usage = document.get("usage")
    return finished(
        model=model,
        answered_by=document.get("model"),
        text=text,
        reasoning=reasoning,
        tool_calls=calls.calls(),
        finish=choice.get("finish_reason"),
        usage=usage_of_chunk(document),
        cost=dollars(usage.get("cost")) if cost_in_usage and isinstance(usage, Mapping) else None,
        simulated=document.get(SIMULATED) is True,
        search_results=read_search_results(document.get("web_search")),
    )


class CompletionAssembly:
    """Assembles a streamed response. ``cost_in_usage`` is as in ``read_answer``."""

    def __init__(self, model: Model, *, cost_in_usage: bool = False) -> None:
        self._model = model
        self._cost_in_usage = cost_in_usage
        self._cost: Cost | None = None
        self._answered_by: Any = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls = ToolCallAssembly()
        self._finish: Any = None
        self._usage: Usage | None = None
        self._simulated = False
        self._search_results: tuple[SearchResult, ...] = ()

    def add(self, chunk: Any) -> Delta | None:
        """Adds a chunk. Returns its part of the answer, or None.

        Raises:
            InvalidResponseError: the chunk is invalid.
        """
        choice = _first_choice(chunk)
        self._answered_by = chunk.get("model") or self._answered_by
        self._simulated = self._simulated or chunk.get(SIMULATED) is True
        self._add_usage(chunk)
        self._search_results += read_search_results(chunk.get("web_search"))
        if choice is None:  # the last chunk may have only the usage
            return None
        self._usage = read_usage(choice.get("usage")) or self._usage  # Kimi's location by default
        self._finish = choice.get("finish_reason") or self._finish
        # A server that cannot stream sends a whole message.
        delta = as_mapping(choice.get("delta") or choice.get("message") or {}, "choices[0].delta")
        calls = as_list(delta.get("tool_calls"))
        pieces = tuple(piece for call in calls for piece in self._calls.add_piece(call)) if calls else ()
        text, reasoning = _texts(delta)
        self._text.append(text)
        self._reasoning.append(reasoning)
        return Delta(text, reasoning, pieces) if text or reasoning or calls else None

    def completion(self) -> Completion:
        """Returns the completion after the end of the stream.

        Raises:
            InvalidResponseError, InterruptedAnswerError, FilteredError: see ``finished``.
        """
        return finished(
            model=self._model,
            answered_by=self._answered_by,
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            tool_calls=self._calls.calls(),
            finish=self._finish,
            usage=self._usage,
            cost=self._cost,
            simulated=self._simulated,
            search_results=self._search_results,
        )

    def _add_usage(self, chunk: Mapping[str, Any]) -> None:
        self._usage = usage_of_chunk(chunk) or self._usage
        usage = chunk.get("usage")
        if self._cost_in_usage and isinstance(usage, Mapping):
            self._cost = dollars(usage.get("cost")) or self._cost


def finished(
    *,
    model: Model,
    answered_by: Any,
    text: str,
    reasoning: str,
    tool_calls: tuple[ToolInvocation, ...],
    finish: Any,
    usage: Usage | None,
    cost: Cost | None,
    simulated: bool,
    search_results: tuple[SearchResult, ...] = (),
) -> Completion:
    """Returns the completion. An unknown finish reason counts as ``stop``, and ``stop`` with tool calls as
    ``tool_calls``. ``cost`` is the cost that the vendor states.

    Raises:
        InterruptedAnswerError: the finish reason is missing, or reports a failure of the vendor.
        FilteredError: the vendor withheld the whole answer; a partly filtered answer is a completion.
    """
    if not finish or str(finish) in _INTERRUPTED:
        raise InterruptedAnswerError
    reason = _FINISH.get(str(finish), "stop")
    if reason == "stop" and tool_calls:
        reason = "tool_calls"
    if reason == "content_filter" and not text:
        raise FilteredError
    return Completion(
        text=text,
        model=model.answered(str(answered_by)) if answered_by else model.id,
        finish_reason=reason,
        usage=usage,
        reasoning=reasoning,
        tool_calls=tool_calls,
        cost=cost if cost is not None or usage is None else model.cost(usage),
        simulated=simulated,
        search_results=search_results,
    )


def read_search_results(results: Any) -> tuple[SearchResult, ...]:
    """Returns the results of GLM's web search. Skips invalid items."""
    return tuple(
        SearchResult(
            title=as_text(result.get("title")),
            link=as_text(result.get("link")),
            content=as_text(result.get("content")),
            media=as_text(result.get("media")),
            published=as_text(result.get("publish_date")),
            reference=as_text(result.get("refer")),
        )
        for result in as_list(results)
        if isinstance(result, Mapping)
    )


def _first_choice(document: Any) -> Mapping[str, Any] | None:
    choices = as_list(as_mapping(document, "the response").get("choices"))
    return as_mapping(choices[0], "choices[0]") if choices else None


def _texts(message: Mapping[str, Any]) -> tuple[str, str]:
    """Returns text and reasoning. The text of a refusal (OpenAI) is the answer's text."""
    content = message.get("content")
    reasoning = as_text(message.get("reasoning_content")) or as_text(message.get("reasoning"))
    if isinstance(content, str):
        return content or as_text(message.get("refusal")), reasoning
    parts = [part for part in as_list(content) if isinstance(part, Mapping)]
    text = "".join(as_text(part.get("text")) for part in parts if part.get("type") == "text")
    thoughts = (piece for part in parts if part.get("type") == "thinking" for piece in as_list(part.get("thinking")))
    own = "".join(as_text(piece.get("text")) for piece in thoughts if isinstance(piece, Mapping))
    return text or as_text(message.get("refusal")), reasoning or own
