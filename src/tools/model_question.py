"""A question to one model, and its result."""

from dataclasses import dataclass
from typing import Any, Final, TypedDict

from ..providers import AttachedFile, Completion, Depth, FunctionTool, JsonFormat, Model, ToolChoice
from .conversation import Turn

AUTO: Final = "auto"
"""The model name that stands for the cheapest model that supports the question."""

_NOTICES: Final = {
    "length": "the answer was truncated at the token limit; ask for less, or raise max_tokens if the tool accepts it",
    "content_filter": "the vendor's content filter truncated the answer",
}
"""Finish reason → the notice for a truncated answer."""


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """A question to one model. If an option is None, the vendor's default applies, unless its description differs."""

    prompt: str
    system: str | None = None
    """System instructions."""
    model: str | None = None
    """An id or alias of the catalog; ``AUTO`` for the cheapest suitable model; or None for the default model, or the
    cheapest suitable one if the default does not support the question."""
    provider: str | None = None
    """Allows only this provider's models, and makes its default model the default."""
    files: tuple[AttachedFile, ...] = ()
    """From ``read_files``, most important first: files that do not fit are omitted from the end."""
    optional_files: int = 0
    """The number of files of earlier turns, which are the last of ``files``. All may be omitted, and they do not affect
    the choice of the model."""
    images: tuple[str, ...] = ()
    """``https:`` or ``data:image/`` URLs, from ``read_images``."""
    history: tuple[Turn, ...] = ()
    """Earlier turns, oldest first."""
    thinking: bool | Depth | None = None
    """Whether to think first, or how deeply."""
    temperature: float | None = None
    max_tokens: int | None = None
    """Maximum tokens of the answer, thinking included."""
    tools: tuple[FunctionTool, ...] = ()
    """Functions that the model may call; ``QuestionResult.completion.tool_calls`` has its calls."""
    tool_choice: ToolChoice | None = None
    """Whether the model must call one of the ``tools``, or must call none."""
    web_search: bool = False
    """Whether the model may use its vendor's web search."""
    response_format: JsonFormat | None = None
    fallback: tuple[str, ...] | None = None
    """The models that are asked in this order if the first one fails before its answer begins (``failover``). None:
    the operator's fallbacks for the tool or the provider, unless ``provider`` is set."""
    cache_key: str | None = None
    """Questions that begin with the same text share a key, so that the vendor can cache that text. The turns of a
    conversation use its id."""


class QuestionOptions(TypedDict, total=False):
    """The options of ``ToolContext.ask``: fields of ``ModelQuestion``."""

    system: str | None
    """System instructions."""
    model: str | None
    """An id or alias, ``auto`` for the cheapest suitable model, or None for the default model."""
    thinking: bool | Depth | None
    temperature: float | None
    max_tokens: int | None
    web_search: bool
    response_format: JsonFormat | None
    fallback: tuple[str, ...] | None
    """The models to ask if the first one fails before its answer begins; None: the operator's fallbacks."""


@dataclass(frozen=True, slots=True)
class OmittedContent:
    """A part of the question that was not sent to the model."""

    what: str
    """A file's name, or a number of turns."""
    reason: str

    def as_data(self) -> dict[str, str]:
        return {"what": self.what, "reason": self.reason}


def depth_notice(model: Model, requested: bool | Depth | None, used: bool | Depth | None) -> str:
    """Returns a notice if the thinking depth differs from the requested one, else an empty string."""
    if used is None or requested == used:  # None: the option was ignored, and a notice says so
        return ""
    return f"{model.id} does not support the thinking depth {requested}; used the nearest depth, {used}"


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The answer to a question."""

    completion: Completion
    model: Model
    """The model of the catalog; ``completion.model`` is the vendor's name for it."""
    completions: int = 1
    """The number of completions made. Only Kimi's web search makes more than one: one per search."""
    model_choice_reason: str | None = None
    """The reason for choosing this model, if the caller did not name it."""
    omitted: tuple[OmittedContent, ...] = ()
    counted: int | None = None
    """The number of tokens in the question, if the vendor counted them; the count is a separate request."""

    thinking: bool | Depth | None = None
    """The depth sent to the vendor: the requested one, or the nearest that the model supports."""
    thinking_requested: bool | Depth | None = None
    failed: tuple[dict[str, str], ...] = ()
    """The models that failed before this one answered, with their errors."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the caller: a truncated answer, or a thinking depth other than the requested one."""
        notices = (self._truncation, depth_notice(self.model, self.thinking_requested, self.thinking))
        return tuple(filter(None, notices))

    @property
    def _truncation(self) -> str:
        return _NOTICES.get(self.completion.finish_reason, "")

    @property
    def text(self) -> str:
        """The model's answer. If it is empty, the reason, because some clients show only the text."""
        if self.completion.text:
            return self.completion.text
        return f"({self.model.id} returned no text: {self._truncation or self.completion.finish_reason})"

    def data(self) -> dict[str, Any]:
        """Returns the fields that every completion adds to ``structured``."""
        data: dict[str, Any] = {
            "model": self.completion.model,
            "provider": self.model.provider,
            "finish_reason": self.completion.finish_reason,
        }
        if isinstance(self.thinking, str):
            data["thinking"] = self.thinking
        if self.completions > 1:
            data["completions"] = self.completions
        if self.counted is not None:
            data["counted_tokens"] = self.counted
        if self.model_choice_reason:
            data["model_choice_reason"] = self.model_choice_reason
        if self.failed:
            data["fallback"] = list(self.failed)
        if self.omitted:
            data["omitted"] = [part.as_data() for part in self.omitted]
        if self.notices:
            data["notice"] = "; ".join(self.notices)
        if results := self.completion.search_results:
            data["search_results"] = [
                {"title": result.title, "link": result.link, "published": result.published} for result in results
            ]
        if self.completion.reasoning:
            data["reasoning"] = self.completion.reasoning
        return data

    def with_text(self) -> dict[str, Any]:
        """``data`` with the text, for pipelines, programs and clients that use only the data."""
        return {"text": self.text, **self.data()}
