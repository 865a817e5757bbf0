"""Parses a vendor's response, whole or in chunks, into the neutral completion. Pure.

Both vendors use OpenAI's format, with ``reasoning_content`` next to ``content``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ..protocol.tool_call import Usage
from .completion import Completion, Delta, FinishReason, SearchResult, ToolInvocation
from .model import Model

_FINISH: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
}
"""The vendors' finish reasons → neutral ones; ``sensitive`` and ``model_context_window_exceeded`` are GLM's."""


SIMULATED: Final = "simulated"
"""The field that marks the simulator's responses; no vendor uses it."""


class InvalidResponseError(ValueError):
    """The response does not have the documented format; the message names the problem."""


class InterruptedAnswerError(Exception):
    """The answer ended prematurely."""


class FilteredError(Exception):
    """The vendor withheld the whole answer as unsafe."""


def read_answer(document: Any, model: Model) -> Completion:
    """Parses a whole response.

    Raises:
        InvalidResponseError, InterruptedAnswerError, FilteredError: see ``finished``.
    """
    choice = _first_choice(document)
    if choice is None:
        raise InvalidResponseError("the choices are missing")
    message = _mapping(choice.get("message"), "choices[0].message")
    return finished(
        model=model,
        answered_by=document.get("model"),
        text=_text(message.get("content")),
        reasoning=_text(message.get("reasoning_content")),
        tool_calls=[_tool_call(call) for call in _list(message.get("tool_calls"))],
        finish=choice.get("finish_reason"),
        usage=read_usage(document.get("usage")),
        simulated=document.get(SIMULATED) is True,
        search_results=read_search_results(document.get("web_search")),
    )


class _StreamedCalls:
    """Assembles the tool calls of a streamed response.

    By OpenAI's format, each piece has its call's index, and the first one also id and name. Some compatible servers
    omit the index, or give several calls the same (github.com/vercel/ai/issues/14277), so an id decides.
    """

    def __init__(self) -> None:
        self.whole: list[dict[str, Any]] = []
        self._by_index: dict[int, dict[str, Any]] = {}

    def add(self, piece: Mapping[str, Any]) -> None:
        function = _mapping(piece.get("function") or {}, "tool_calls[].function")
        call_id, name, index = _text(piece.get("id")), _text(function.get("name")), piece.get("index")
        call = self._call_of(call_id, name, index if isinstance(index, int) else None)
        call["id"] = call_id or call["id"]
        call["name"] += name
        call["arguments"] += _text(function.get("arguments"))
        call["extra_content"] = _extra_content(piece) or call["extra_content"]

    def _call_of(self, call_id: str, name: str, index: int | None) -> dict[str, Any]:
        last = self.whole[-1] if self.whole else None
        if call_id:
            call = next((call for call in self.whole if call["id"] == call_id), None)
            unnamed = self._by_index.get(index) if index is not None else None
            if call is None and unnamed is not None and not unnamed["id"]:
                call = unnamed
        elif index is not None:
            call = self._by_index.get(index)
        else:  # without id and index, a second name begins another call
            call = None if last is not None and name and last["name"] else last
        if call is None:
            call = {"id": "", "name": "", "arguments": "", "extra_content": None}
            self.whole.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


class CompletionAssembly:
    """Assembles a streamed response."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._answered_by: Any = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls = _StreamedCalls()
        self._finish: Any = None
        self._usage: Usage | None = None
        self._simulated = False
        self._search_results: tuple[SearchResult, ...] = ()

    def add(self, chunk: Any) -> Delta | None:
        """Adds a chunk. Returns its text or reasoning, or None.

        Raises:
            InvalidResponseError: the chunk is invalid.
        """
        choice = _first_choice(chunk)
        self._answered_by = chunk.get("model") or self._answered_by
        self._simulated = self._simulated or chunk.get(SIMULATED) is True
        self._usage = read_usage(chunk.get("usage")) or self._usage
        self._search_results += read_search_results(chunk.get("web_search"))
        if choice is None:  # the last chunk may contain only the usage
            return None
        self._usage = read_usage(choice.get("usage")) or self._usage  # Kimi's location by default
        self._finish = choice.get("finish_reason") or self._finish
        delta = _mapping(choice.get("delta") or {}, "choices[0].delta")
        for call in _list(delta.get("tool_calls")):
            self._calls.add(_mapping(call, "tool_calls[]"))
        text, reasoning = _text(delta.get("content")), _text(delta.get("reasoning_content"))
        self._text.append(text)
        self._reasoning.append(reasoning)
        return Delta(text, reasoning) if text or reasoning else None

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
            tool_calls=[ToolInvocation(**call) for call in self._calls.whole],
            finish=self._finish,
            usage=self._usage,
            simulated=self._simulated,
            search_results=self._search_results,
        )


def finished(
    *,
    model: Model,
    answered_by: Any,
    text: str,
    reasoning: str,
    tool_calls: list[ToolInvocation],
    finish: Any,
    usage: Usage | None,
    simulated: bool,
    search_results: tuple[SearchResult, ...] = (),
) -> Completion:
    """Returns the completion. An unknown finish reason counts as ``stop``.

    Raises:
        InterruptedAnswerError: the finish reason is missing, or reports a failure of the vendor's network.
        FilteredError: the vendor withheld the whole answer; a partly filtered answer is a completion.
    """
    if not finish or finish == "network_error":
        raise InterruptedAnswerError
    reason = _FINISH.get(str(finish), "stop")
    if reason == "content_filter" and not text:
        raise FilteredError
    return Completion(
        text=text,
        model=str(answered_by or model.id),
        finish_reason=reason,
        usage=usage,
        reasoning=reasoning,
        tool_calls=_identified(tool_calls),
        cost=None if usage is None else model.cost(usage),
        simulated=simulated,
        search_results=search_results,
    )


def _identified(calls: list[ToolInvocation]) -> tuple[ToolInvocation, ...]:
    """The calls with unique ids, by which their results are sent back; some servers send none, or one for all."""
    known: set[str] = set()
    named = []
    for number, call in enumerate(calls):
        unique = call.id
        while not unique or unique in known:
            unique = f"call_{number}" if unique in {"", call.id} else f"{unique}_"
        known.add(unique)
        named.append(call if unique == call.id else replace(call, id=unique))
    return tuple(named)


def read_search_results(results: Any) -> tuple[SearchResult, ...]:
    """Returns the results of GLM's web search. Skips invalid items."""
    return tuple(
        SearchResult(
            title=_text(result.get("title")),
            link=_text(result.get("link")),
            content=_text(result.get("content")),
            media=_text(result.get("media")),
            published=_text(result.get("publish_date")),
            reference=_text(result.get("refer")),
        )
        for result in _list(results)
        if isinstance(result, Mapping)
    )


def read_usage(usage: Any) -> Usage | None:
    """Returns the token usage, or None. Kimi may put ``cached_tokens`` outside the details.

    Raises:
        InvalidResponseError: the details are not objects.
    """
    if not isinstance(usage, Mapping):
        return None
    prompt = _mapping(usage.get("prompt_tokens_details") or {}, "usage.prompt_tokens_details")
    completion = _mapping(usage.get("completion_tokens_details") or {}, "usage.completion_tokens_details")
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        reasoning_tokens=_count(completion.get("reasoning_tokens")),
        cached_tokens=_count(prompt.get("cached_tokens") or usage.get("cached_tokens")),
    )


def _first_choice(document: Any) -> Mapping[str, Any] | None:
    choices = _list(_mapping(document, "the response").get("choices"))
    return _mapping(choices[0], "choices[0]") if choices else None


def _tool_call(call: Any) -> ToolInvocation:
    call = _mapping(call, "tool_calls[]")
    function = _mapping(call.get("function"), "tool_calls[].function")
    return ToolInvocation(
        _text(call.get("id")), _text(function.get("name")), _text(function.get("arguments")), _extra_content(call)
    )


def _extra_content(call: Mapping[str, Any]) -> dict[str, Any] | None:
    extra = call.get("extra_content")
    return dict(extra) if isinstance(extra, Mapping) else None


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidResponseError(f"{what} is not an object")
    return value


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | Mapping) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
