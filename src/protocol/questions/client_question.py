"""Questions to the client of a call. All of them are validated and bounded."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from ..error_codes import ToolExecutionError
from ..terminal_text import terminal_safe
from ..tool_call import Json
from .elicitation_form import ElicitationFormError, read_form

ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
LIST_ROOTS: Final = "roots/list"

QuestionKind = Literal["form", "url", "sampling", "sampling_tools", "roots"]
"""The kinds of questions: a form, the visit of a URL, a completion, a completion with tools, the client's roots."""
QUESTION_KINDS: Final[tuple[QuestionKind, ...]] = get_args(QuestionKind)

MAX_MESSAGE_CHARS: Final = 4_000
"""The maximum length of the text that a person reads."""
MAX_URL_CHARS: Final = 2_048
"""The maximum length of a URL. Browsers and servers accept URLs of this length."""
MAX_QUESTION_BYTES: Final = 256 * 1024
"""The maximum size of a question as JSON. A prompt of this size has some 60,000 tokens."""
MAX_SAMPLING_MESSAGES: Final = 200
ROLES: Final = ("user", "assistant")
"""The roles of messages in a completion."""
SOURCE_KEY: Final = "toold/source"
"""The key in a question's ``_meta`` for the source that asks."""

_SAMPLING_FIELDS: Final = (
    *("messages", "modelPreferences", "systemPrompt", "temperature", "maxTokens", "stopSequences", "tools"),
    "toolChoice",
)
"""``includeContext`` is not passed on, because a server must not get the context of others; neither is ``metadata``."""


REQUIRED_KEY: Final = "requiredCapabilities"
"""The key in an error's ``details`` for the capabilities that the client must declare, as in MCP's error."""
_CAPABILITIES: Final[Mapping[QuestionKind, dict[str, Any]]] = {
    "form": {"elicitation": {"form": {}}},
    "url": {"elicitation": {"url": {}}},
    "sampling": {"sampling": {}},
    "sampling_tools": {"sampling": {"tools": {}}},
    "roots": {"roots": {}},
}
ABILITIES: Final[Mapping[QuestionKind, str]] = {
    "form": "show a form (elicitation)",
    "url": "open a URL (elicitation of the mode url)",
    "sampling": "ask a model (sampling)",
    "sampling_tools": "ask a model with tools (sampling.tools)",
    "roots": "list its roots",
}
"""What a client must do to answer each kind, for messages."""
_FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "elicitation": ("form", "url"),
    "sampling": ("tools", "context"),
    "roots": (),
}
"""The capabilities for questions, with their features."""


class QuestionRefusedError(ToolExecutionError):
    """A question was not asked or not answered; the message says why."""


class UndeclaredCapabilityError(QuestionRefusedError):
    """The client has not declared that it answers this kind of question, so it was not asked."""

    def __init__(self, message: str, kind: "QuestionKind") -> None:
        super().__init__(message, details={REQUIRED_KEY: _CAPABILITIES[kind]})


class ClientQuestion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question in MCP's format, within its bounds."""

    kind: QuestionKind
    method: str
    params: dict[str, Json]
    source: str = ""
    """The source that asks; empty for a tool of the daemon."""


def kinds_declared(capabilities: object) -> tuple[QuestionKind, ...]:
    """Returns the kinds that a client answers, by its capabilities in MCP. An empty ``elicitation`` means forms."""
    if not isinstance(capabilities, Mapping):
        return ()
    elicitation, sampling = capabilities.get("elicitation"), capabilities.get("sampling")
    kinds: set[QuestionKind] = set()
    if isinstance(elicitation, Mapping):
        if isinstance(elicitation.get("form"), Mapping) or "url" not in elicitation:
            kinds.add("form")
        if isinstance(elicitation.get("url"), Mapping):
            kinds.add("url")
    if isinstance(sampling, Mapping):
        kinds.add("sampling")
        if isinstance(sampling.get("tools"), Mapping):
            kinds.add("sampling_tools")
    if isinstance(capabilities.get("roots"), Mapping):
        kinds.add("roots")
    return known_kinds(kinds)


def declared_capabilities(kinds: Iterable[QuestionKind]) -> dict[str, Any]:
    """Returns the MCP capabilities that declare that a client answers these kinds."""
    declared: dict[str, Any] = {}
    for kind in kinds:
        for name, features in _CAPABILITIES[kind].items():
            declared.setdefault(name, {}).update(features)
    return declared


def required_capabilities(details: object) -> dict[str, Any] | None:
    """Returns the capabilities that a client must declare, from the details of an error; None if the details name
    none.
    """
    return missing_capabilities(details) if isinstance(details, Mapping) and len(details) == 1 else None


def missing_capabilities(data: object) -> dict[str, Any] | None:
    """Returns the missing capabilities for questions, from the data of MCP's error; None if the data names none."""
    required = data.get(REQUIRED_KEY) if isinstance(data, Mapping) else None
    if not isinstance(required, Mapping):
        return None
    named: dict[str, Any] = {
        name: {feature: {} for feature in features if feature in _FEATURES[name]}
        for name, features in required.items()
        if name in _FEATURES and isinstance(features, Mapping)
    }
    return named or None


def known_kinds(names: object) -> tuple[QuestionKind, ...]:
    """Returns the kinds among these names, in the order of ``QUESTION_KINDS``."""
    if not isinstance(names, Iterable):
        return ()
    listed = set(filter(lambda name: isinstance(name, str), names))
    return tuple(kind for kind in QUESTION_KINDS if kind in listed)


def read_question(method: str, params: object, source: str = "") -> ClientQuestion:
    """Reads a question of MCP. Its text names the source, so that a person knows who gets the answer.

    Raises:
        QuestionRefusedError: the question is invalid or too large.
    """
    fields = params if isinstance(params, Mapping) else {}
    try:
        question = _question(method, fields, source)
    except (ElicitationFormError, ValueError) as error:
        who = source or "The tool"
        raise QuestionRefusedError(f"{who} asked an invalid question ({shown_method(method)}): {error}.") from None
    return question


def shown_method(method: str) -> str:
    """Returns the method in a form for messages."""
    return terminal_safe(method[:60])


def _question(method: str, fields: Mapping[str, Any], source: str) -> ClientQuestion:
    meta = {"_meta": {SOURCE_KEY: source}} if source else {}
    if method == LIST_ROOTS:
        return ClientQuestion("roots", method, {**meta}, source)
    if method == ELICIT and fields.get("mode", "form") == "form":
        form = read_form(fields.get("requestedSchema"))
        text = _text(fields.get("message"), source, "asks")
        params: dict[str, Json] = {"mode": "form", "message": text, "requestedSchema": form, **meta}
        return ClientQuestion("form", method, _bounded(params), source)
    if method == ELICIT and fields.get("mode") == "url":
        url = _url(fields.get("url"))
        text = _text(fields.get("message"), source, f"asks you to open a page of {urlsplit(url).netloc}")
        params = {"mode": "url", "message": text, "url": url, **meta}
        identifier = fields.get("elicitationId")
        if isinstance(identifier, str):
            params["elicitationId"] = terminal_safe(identifier[:200])
        return ClientQuestion("url", method, params, source)
    if method == SAMPLE:
        return _sampling(fields, source, meta)
    raise ElicitationFormError("toold does not know this kind of question")


def _sampling(fields: Mapping[str, Any], source: str, meta: Mapping[str, Any]) -> ClientQuestion:
    messages, max_tokens = fields.get("messages"), fields.get("maxTokens")
    if not isinstance(messages, list) or not 0 < len(messages) <= MAX_SAMPLING_MESSAGES:
        raise ElicitationFormError(f"messages must be a list of 1 to {MAX_SAMPLING_MESSAGES}")
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise ElicitationFormError("each message needs the role user or assistant")
        if not isinstance(message.get("content"), dict | list):
            raise ElicitationFormError("each message needs content")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        raise ElicitationFormError("maxTokens must be a whole number above 0")
    params = {name: fields[name] for name in _SAMPLING_FIELDS if fields.get(name) is not None}
    if not isinstance(params.get("systemPrompt", ""), str):
        raise ElicitationFormError("systemPrompt must be a string")
    temperature = params.get("temperature", 0)
    if not isinstance(temperature, int | float) or isinstance(temperature, bool):
        raise ElicitationFormError("temperature must be a number")
    tools = params.get("tools")
    if "tools" in params and not isinstance(tools, list):
        raise ElicitationFormError("tools must be a list")
    kind: QuestionKind = "sampling_tools" if tools or "toolChoice" in params else "sampling"
    return ClientQuestion(kind, SAMPLE, _bounded({**params, **meta}), source)


def _text(message: object, source: str, does: str) -> str:
    if not isinstance(message, str):
        raise ElicitationFormError("message must be a string")
    text = terminal_safe(message[: MAX_MESSAGE_CHARS + 1], keep="\n").strip()
    if len(text) > MAX_MESSAGE_CHARS:
        text = f"{text[: MAX_MESSAGE_CHARS - 1]}…"
    return f"{source} {does}: {text}" if source else text


def _url(url: object) -> str:
    if not isinstance(url, str) or len(url) > MAX_URL_CHARS:
        raise ElicitationFormError(f"url must be a string of up to {MAX_URL_CHARS} characters")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ElicitationFormError("url has characters that are not allowed in URLs")
    parts = urlsplit(url)
    if parts.scheme not in {"https", "http"} or not parts.hostname:
        raise ElicitationFormError("url must begin with https:// or http://")
    if "@" in parts.netloc:
        raise ElicitationFormError("url must have no user name, which would hide its host")
    return url


def _bounded(params: dict[str, Json]) -> dict[str, Json]:
    try:
        size = len(msgspec.json.encode(params))
    except (TypeError, ValueError, RecursionError):
        raise ElicitationFormError("it is not JSON") from None
    if size > MAX_QUESTION_BYTES:
        raise ElicitationFormError(f"it has {size:,} bytes, more than {MAX_QUESTION_BYTES:,}")
    return params
