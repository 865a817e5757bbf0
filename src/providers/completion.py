"""The neutral completion request and its answer: what a tool says to a model, whoever the vendor is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..protocol.tool_call import Cost, Usage
from .model_catalog import Depth, Model


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of text within a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image within a message: an ``https:`` or ``data:image/…;base64,…`` URL."""

    url: str


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A text file that goes with the request, embedded before the conversation."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """A tool that the model wants called; ``arguments`` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. ``tool_call_id`` and ``tool_name`` stand on ``tool`` messages, ``tool_calls`` on ``assistant`` ones."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[TextPart | ImagePart, ...]
    tool_calls: tuple[ToolInvocation, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    """Kimi's built-in tools want their name back with their answer."""
    reasoning: str = ""
    """Of an ``assistant`` message: models that always think want theirs back with the results of their tool calls."""


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that the model may ask for; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


Recency = Literal["oneDay", "oneWeek", "oneMonth", "oneYear"]
"""How old a page may be; in Zhipu's words."""


@dataclass(frozen=True, slots=True)
class WebSearch:
    """The vendor's own web search, as a tool of the model. What is None is left to the vendor.

    GLM searches within the completion and takes the settings. Kimi's ``$web_search`` has none, and asks to be called:
    ``turns.follow_up`` says what to send next.
    """

    query: str | None = None
    """Search for this, whatever the model would have searched for."""
    count: int | None = None
    """Results, 1 to 50."""
    recency: Recency | None = None
    domain: str | None = None
    """Pages of this domain alone, such as ``docs.python.org``."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page that a vendor's web search found. What the vendor does not say is empty."""

    title: str
    link: str
    content: str
    """A summary, or a piece of the page."""
    media: str = ""
    """The site's name."""
    published: str = ""
    """As the vendor writes it, mostly ``YYYY-MM-DD``."""
    reference: str = ""
    """How the model's answer refers to it, such as ``ref_1``."""


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """The answer is to be one JSON object, by ``schema`` where there is one.

    A model whose vendor holds it to the schema (``Model.structured``) is told so; another one is told the schema in
    words and held to JSON alone: whoever reads the answer checks it.
    """

    schema: dict[str, Any] | None = None
    """A JSON Schema object. Kimi takes a subset: a ``type`` everywhere, nothing beside a ``$ref``, no tuples."""
    name: str = "answer"


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One question to one model. What is None is left to the vendor."""

    model: Model
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    """Bound on the answer, reasoning included."""
    tools: tuple[FunctionTool | WebSearch, ...] = ()
    thinking: bool | Depth | None = None
    """Whether to reason first, or how deeply: one of ``Model.depths``."""
    files: tuple[AttachedFile, ...] = ()
    response_format: JsonFormat | None = None
    cache_key: str | None = None
    """The same for requests that begin alike, such as a conversation's id: Kimi then finds its cache more often. GLM
    caches by itself and has no word for it."""


FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


@dataclass(frozen=True, slots=True)
class Completion:
    """One model's answer."""

    text: str
    model: str
    """The model that the vendor says answered."""
    finish_reason: FinishReason
    usage: Usage | None
    reasoning: str = ""
    tool_calls: tuple[ToolInvocation, ...] = ()
    cost: Cost | None = None
    """By the catalog's list price; None where the price or the usage is not known."""
    simulated: bool = False
    """The answer says that a simulator made it up, whatever address it came from."""
    search_results: tuple[SearchResult, ...] = ()
    """What GLM's web search found on the way."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the vendor's answer: those worth showing, without what names the account (see ``headers.py``)."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer: text, or reasoning."""

    text: str = ""
    reasoning: str = ""


OnDelta = Callable[[Delta], None]
"""Called on the event loop, in order, while the answer streams; must not block."""
