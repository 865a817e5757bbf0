"""The words of a tool by field, and those of a query. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from ..protocol.tool_call import Annotations, ToolInfo
from .search_vocabulary import ACTIONS, ASKED_ACTIONS, PHRASES, STOP_WORDS, VERBAL, Action, stem

MAX_QUERY_WORDS: Final = 32
_WORD: Final = re.compile(r"[^\W_]+")
_JOINED: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""The words in ``listFilesByID2``."""
_REQUEST: Final = re.compile(r"(?:\A|\n\n)(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|TRACE) (/\S*)\s*\Z")
"""Method and path, at the end of descriptions of API operations."""
_PATH_PARAMETER: Final = re.compile(r"\{[^{}]*\}")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s|\n")
_IMPERATIVE: Final = re.compile(
    r"\s*([^\W\d]+) (?:(?:on|to) )?(?:a|an|the|my|our|this|that|all|two|another)\b", re.IGNORECASE
)
"""``star a repository``, ``comment on an issue``: the first word is a verb."""
_QUESTION: Final = re.compile(
    r"\s*(?:who|which|what|how|where|when|why|is|are|does|do|did|has|have)\b|.*\?\s*\Z", re.IGNORECASE | re.DOTALL
)
_PHRASE: Final = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
_TITLE_CHARS: Final = 200
_NAMED, _PLURAL_NAMED = 0.2, 0.7
"""The certainty that a query without a verb asks to read or list the named objects."""


class Field(Enum):
    """A part of a tool's definition."""

    NAME = "name"
    """Without the name of its source."""
    TITLE = "title"
    """The first sentence of the description."""
    PATH = "path"
    SOURCE = "source"
    DESCRIPTION = "description"
    ARGUMENTS = "arguments"
    ARGUMENT_TEXTS = "argument texts"


@dataclass(frozen=True, slots=True)
class RankedTool:
    """The form of a tool that search uses."""

    info: ToolInfo
    source: str


@dataclass(frozen=True, slots=True)
class SearchText:
    """The words of a tool."""

    fields: Mapping[Field, frozenset[str]]
    title: frozenset[str]
    """The words that describe its action: those of the first sentence, or of the name if there is no description."""
    surface: frozenset[str]
    """The words of name and title with their endings."""
    own_name: str
    sentence: str
    """The first sentence of the description."""
    comprehensive: bool
    """Whether the name indicates that the tool is about all objects, without a restriction."""
    action: Action | None
    verbs: frozenset[str]
    """The first stems of its title and its name, and the stem of the verb that names its action."""
    deprecated: bool


@dataclass(frozen=True, slots=True)
class QueryWords:
    """The words of a query."""

    surface: Sequence[str]
    """Every word in lower case."""
    stems: Sequence[str]
    """The stems of the words that have a meaning, each once."""
    action: Action | None
    """The action that the query asks for, if a word names one."""
    verb: str
    """The stem of the word that names the action."""
    certainty: float
    """The certainty of the action, from 0 to 1. A query without a verb is assumed to ask for the named objects."""


def words(text: str) -> list[str]:
    """The words of a text in lower case; names are split into their words."""
    whole = _WORD.findall(text)
    return [part.lower() for word in whole for part in (_JOINED.findall(word) if word.isascii() else [word])]


def stems(text: str) -> Iterator[str]:
    """The stems of the words that have a meaning."""
    return (stem(word) for word in words(text) if word not in STOP_WORDS)


def query_words(query: str) -> QueryWords:
    """The words of a query, at most ``MAX_QUERY_WORDS``."""
    plain = _PHRASE.sub(lambda match: PHRASES[match[0].lower()], query)
    every = [word for part in plain.split() for word in (["set_up"] if part == "set_up" else words(part))]
    imperative = _IMPERATIVE.match(plain)
    if imperative is not None and every[0] in VERBAL:
        every[0] = VERBAL[every[0]]
    meaningful = list(dict.fromkeys(stem(word) for word in every if word not in STOP_WORDS))[:MAX_QUERY_WORDS]
    plural = any(word.endswith("s") and stem(word) != word and word not in STOP_WORDS for word in every[:4])
    several = Action.LIST if plural or "all" in every else Action.READ
    first = stem(every[0]) if every else ""
    action = ASKED_ACTIONS.get(first, Action.OTHER if imperative else None)
    if _QUESTION.match(plain):
        return QueryWords(every, meaningful, several, "", 1.0)
    if action is None:
        return QueryWords(every, meaningful, several, "", _PLURAL_NAMED if several is Action.LIST else _NAMED)
    if action is Action.READ:
        action = several
    return QueryWords(every, meaningful, action, first, 1.0)


def search_text(tool: RankedTool) -> SearchText:
    """The words of a tool by field."""
    info = tool.info
    own = info.name.removeprefix(f"{tool.source}_")
    request = _REQUEST.search(info.description)
    method, path = (request[1], request[2]) if request else ("", "")
    text = (info.description[: request.start()] if request else info.description).strip()
    sentence, *rest = _SENTENCE_END.split(text, maxsplit=1)
    if len(sentence) > _TITLE_CHARS:
        sentence, rest = sentence[:_TITLE_CHARS], [sentence[_TITLE_CHARS:], *rest]
    names, texts = _arguments(info.input_schema)
    fields = {
        Field.NAME: frozenset(stems(own)),
        Field.TITLE: frozenset(stems(sentence)),
        Field.PATH: frozenset(stems(_PATH_PARAMETER.sub("", path))),
        Field.SOURCE: frozenset(stems(tool.source)) if own != info.name else frozenset[str](),
        Field.DESCRIPTION: frozenset(stems(" ".join(rest))),
        Field.ARGUMENTS: frozenset(stems(" ".join(names))),
        Field.ARGUMENT_TEXTS: frozenset(stems(" ".join(texts))),
    }
    action, verb = _action(sentence, own, method, path, info.annotations)
    return SearchText(
        fields,
        title=fields[Field.TITLE] or fields[Field.NAME],
        surface=frozenset([*words(own), *words(sentence)]),
        own_name=own,
        sentence=sentence,
        comprehensive="all" in words(own),
        action=action,
        verbs=frozenset([verb, *(stem(first) for part in (sentence, own) for first in words(part)[:1])]),
        deprecated="deprecated" in info.description.lower() or "deprecated" in own.lower(),
    )


def _action(sentence: str, name: str, method: str, path: str, annotations: Annotations) -> tuple[Action | None, str]:
    """The action of the tool, by the first verb of its title or its name, else by its HTTP method, else by its
    hints.
    """
    item = path.endswith("}")
    for text in (sentence, name):
        for word in words(text)[:2]:
            action = ACTIONS.get(stem(word))
            if action is not None and word not in {"post", "put", "get", "return", "returns"}:
                return action, stem(word)
    by_method = {
        "GET": Action.READ if item else Action.LIST,
        "POST": Action.UPDATE if item else Action.CREATE,
        "PUT": Action.UPDATE,
        "PATCH": Action.UPDATE,
        "DELETE": Action.DELETE,
    }
    if method in by_method:
        return by_method[method], ""
    if annotations.destructive_hint:
        return Action.DELETE, ""
    return (Action.READ if annotations.read_only_hint else None), ""


def _arguments(schema: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return [], []
    texts = [argument.get("description") for argument in properties.values() if isinstance(argument, dict)]
    return list(properties), [text for text in texts if isinstance(text, str)]
