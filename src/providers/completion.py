"""The vendor-neutral completion request and completion."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..protocol.tool_call import Cost, ToolCallPiece, Usage
from .model import Depth, Model


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text part of a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image part of a message: an ``https:`` or ``data:image/…;base64,…`` URL."""

    url: str
    detail: str | None = None
    """How closely the model looks at the image, in OpenAI's terms."""


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A text file attached to the request, embedded before the last user message."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """A tool call by the model; ``arguments`` is JSON text, as the model wrote it."""

    id: str
    """Unique in its completion."""
    name: str
    arguments: str
    extra_content: Mapping[str, Any] | None = None
    """Data that the vendor sent with the call and expects back with its result, such as Gemini's thought signature."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``tool`` messages have ``tool_call_id`` and ``tool_name``; ``assistant`` messages may have
    ``tool_calls``.

    Each call of an ``assistant`` message has one result, in any order, before the next message of another role.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[TextPart | ImagePart, ...]
    tool_calls: tuple[ToolInvocation, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    """``name`` on the wire, which Kimi's built-in tools require. For other messages, the speaker's name."""
    reasoning: str = ""
    """The reasoning of an ``assistant`` message, which thinking models require with the results of their tool calls."""


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function that the model may call; ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool | None = None
    """Whether the arguments must match the schema exactly, if the vendor enforces that."""


Recency = Literal["oneDay", "oneWeek", "oneMonth", "oneYear"]
"""The maximum age of a page, in Zhipu's terms."""


@dataclass(frozen=True, slots=True)
class WebSearch:
    """The vendor's web search as a tool of the model. None in a field selects the vendor's default.

    GLM searches during the completion and accepts the settings. Kimi's ``$web_search`` has no settings and is called by
    the model; ``follow_up`` returns the messages to send next.
    """

    query: str | None = None
    """Replaces the model's own query."""
    count: int | None = None
    """The number of results, 1 to 50."""
    recency: Recency | None = None
    domain: str | None = None
    """Only pages of this domain, such as ``docs.python.org``."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A page found by a vendor's web search. Fields that the vendor does not report are empty."""

    title: str
    link: str
    content: str
    """A summary or an excerpt."""
    media: str = ""
    """The site's name."""
    published: str = ""
    """The date in the vendor's format, usually ``YYYY-MM-DD``."""
    reference: str = ""
    """The reference in the model's answer, such as ``ref_1``."""


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """Requests one JSON object, with ``schema`` if given.

    If the vendor can enforce the schema (``Model.structured``), it is sent as a parameter. Otherwise the instructions
    contain it, and only JSON is enforced, so the reader must validate the answer.
    """

    schema: dict[str, Any] | None = None
    """A JSON Schema object. Kimi supports a subset: ``type`` is required, ``$ref`` must stand alone, no tuples."""
    name: str = "answer"
    strict: bool | None = None
    """Whether the vendor must enforce the schema; None: if it can. Only OpenAI-compatible vendors offer this choice."""


ToolChoice = Literal["none", "required"]


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One request to one model. None in a field selects the vendor's default."""

    model: Model
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    """Maximum tokens of the answer, including thinking."""
    tools: tuple[FunctionTool | WebSearch, ...] = ()
    tool_choice: ToolChoice | None = None
    """Whether the model must or must not call a function; None: the model decides. To force a certain function, offer
    only that function. Only with functions; GLM refuses ``required``.
    """
    thinking: bool | Depth | None = None
    """Whether to think first, or how deeply: one of ``Model.depths``."""
    files: tuple[AttachedFile, ...] = ()
    response_format: JsonFormat | None = None
    cache_key: str | None = None
    """A key that is the same for requests with the same beginning, such as a conversation's id; it improves Kimi's
    cache hits. GLM caches automatically and has no such parameter.
    """
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the body, in OpenAI's format. They are sent unchanged; the vendor validates them."""


FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


@dataclass(frozen=True, slots=True)
class Completion:
    """One model's answer."""

    text: str
    model: str
    """The model name in the vendor's response."""
    finish_reason: FinishReason
    usage: Usage | None
    reasoning: str = ""
    tool_calls: tuple[ToolInvocation, ...] = ()
    cost: Cost | None = None
    """The cost that the vendor states, or else the cost at list price; None if the price or the usage is unknown."""
    simulated: bool = False
    """Whether the response is marked as the simulator's."""
    search_results: tuple[SearchResult, ...] = ()
    """The results of GLM's web search."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The useful response headers, without account identifiers (``shown_headers``)."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A chunk of a streamed answer. It may be empty if the vendor has begun a part that is not complete yet."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallPiece, ...] = ()


OnDelta = Callable[[Delta], None]
"""Called on the event loop, in order, while the answer streams; must not block."""
