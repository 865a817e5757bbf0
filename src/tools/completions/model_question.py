"""A question to one model, and what came of it."""

from dataclasses import dataclass
from typing import Any, Final

from ...providers import AttachedFile, Completion, Depth, FunctionTool, JsonFormat, Model, ProviderName
from ..conversation import Turn

AUTO: Final = "auto"
"""As a model's name: the cheapest that can do what the question needs."""

_NOTICES: Final = {
    "length": "the answer was cut off at the token limit; ask for less, or raise max_tokens where the tool takes it",
    "content_filter": "the vendor's content filter cut the answer off",
}
"""What ends an answer before its end."""


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """What is asked. What is None is left to the vendor, but for the model."""

    prompt: str
    system: str | None = None
    """Instructions that stand above everything."""
    model: str | None = None
    """An id or alias of the catalog: that model or an error. ``AUTO`` chooses; None takes the default one,
    and chooses where that cannot do what is asked."""
    provider: ProviderName | None = None
    """Only a model of this provider, whose default one is then meant where none is named."""
    files: tuple[AttachedFile, ...] = ()
    """As ``read_files`` gives them, the most important first: what does not fit is left out from the end."""
    images: tuple[str, ...] = ()
    """``https:`` or ``data:image/`` URLs, as ``read_images`` gives them."""
    history: tuple[Turn, ...] = ()
    """What was said before, the oldest first."""
    thinking: bool | Depth | None = None
    """Whether to reason first, or how deeply."""
    temperature: float | None = None
    max_tokens: int | None = None
    """Bound on the answer, reasoning included."""
    tools: tuple[FunctionTool, ...] = ()
    """Functions that the model may ask for; ``QuestionResult.completion.tool_calls`` has what it asked for."""
    web_search: bool = False
    """Whether the model may use its vendor's web search."""
    response_format: JsonFormat | None = None
    cache_key: str | None = None
    """The same for questions that begin alike, such as a conversation's id."""


@dataclass(frozen=True, slots=True)
class OmittedContent:
    """Something of the question that the model was not given."""

    what: str
    """A file's name, or so many turns of the conversation."""
    why: str


def another_depth(model: Model, wanted: bool | Depth | None, asked: bool | Depth | None) -> str:
    """What to say where the model was asked to think to another depth than was wanted; else nothing."""
    if wanted == asked:
        return ""
    return f"{model.id} cannot think {wanted}, and was asked to think {asked}, the nearest depth that it has"


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """A question that was answered."""

    completion: Completion
    model: Model
    """Of the catalog; ``completion.model`` is what the vendor calls it."""
    completions: int = 1
    """As many were made and paid for: more than one only where Kimi searched the web, which takes one a search."""
    chosen_because: str | None = None
    """Why this model, where it was left to choose."""
    left_out: tuple[OmittedContent, ...] = ()
    counted: int | None = None
    """The whole question in tokens, where the vendor was asked for its count: a request more."""

    thinking: bool | Depth | None = None
    """What the model was asked: where the caller wanted a depth that it has not, the nearest one."""
    thinking_wanted: bool | Depth | None = None
    """By the caller."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What the reader of the answer must know of it: that it was cut off, or thought about otherwise than asked."""
        notices = (self._ending, another_depth(self.model, self.thinking_wanted, self.thinking))
        return tuple(filter(None, notices))

    @property
    def _ending(self) -> str:
        return _NOTICES.get(self.completion.finish_reason, "")

    @property
    def text(self) -> str:
        """The model's words; where there are none, why, since a plain client sees the text alone."""
        if self.completion.text:
            return self.completion.text
        return f"({self.model.id} gave no words: {self._ending or self.completion.finish_reason})"

    def data(self) -> dict[str, Any]:
        """What ``structured`` says of it beside what the tool itself has to say."""
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
        if self.chosen_because:
            data["chosen_because"] = self.chosen_because
        if self.left_out:
            data["left_out"] = [{"what": part.what, "why": part.why} for part in self.left_out]
        if self.notices:
            data["notice"] = "; ".join(self.notices)
        if results := self.completion.search_results:
            data["search_results"] = [
                {"title": found.title, "link": found.link, "published": found.published} for found in results
            ]
        if self.completion.reasoning:
            data["reasoning"] = self.completion.reasoning
        return data

    def with_text(self) -> dict[str, Any]:
        """The same with the words themselves, for pipelines, programs and clients that take the data alone."""
        return {"text": self.text, **self.data()}
