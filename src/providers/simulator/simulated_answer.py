"""What the simulator reads out of a request, and what it answers. Pure, and the same for the same request."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from math import ceil
from typing import Any, Final

from ..model_catalog import Model
from ..request_body import SCHEMA_BEGINS, SCHEMA_ENDS
from .directives import Directives, read_directives, without_directives
from .schema_example import value_for
from .vendor_rules import thinks

_FILE_BEGINS: Final = re.compile(r'<(file(?:-\d+)?) name="([^"]*)">\n')
_CHARS_PER_TOKEN: Final = 4
_WEB_SEARCH: Final = "$web_search"
"""Kimi's built-in search."""


@dataclass(frozen=True, slots=True)
class SimulatedConversation:
    """A request's messages, taken apart."""

    prompt: str
    """The last user message's own words, directives included."""
    files: tuple[tuple[str, str], ...]
    """Name and text of every attached file."""
    images: int
    system: str
    earlier: tuple[str, ...]
    """The words of the user and assistant messages before the last user message."""
    tool_results: tuple[str, ...]
    """What tools answered after the last user message."""
    searches: int
    """How many of these were the vendor's own web search."""
    input_tokens: int
    cached_tokens: int
    """Those of the messages before the last: what a vendor would have in its cache."""


@dataclass(frozen=True, slots=True)
class SimulatedReply:
    """The simulator's answer, before it takes a vendor's shape."""

    text: str
    reasoning: str
    tool_calls: tuple[tuple[str, str], ...]
    """Name and arguments."""
    finish: str
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    search_results: tuple[dict[str, str], ...] = ()
    """What GLM's web search found."""


def read_conversation(messages: Sequence[Mapping[str, Any]]) -> SimulatedConversation:
    """Take a request's ``messages`` apart."""
    texts = [_words_of(message) for message in messages]
    parts = [_take_apart(text) for text in texts]
    last = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    tokens = [count_tokens(text) for text in texts]
    return SimulatedConversation(
        prompt=parts[last][0] if last >= 0 else "",
        files=tuple(file for _, files in parts for file in files),
        images=sum(_images_in(message) for message in messages),
        system=" ".join(text for text, m in zip(texts, messages, strict=True) if m.get("role") == "system"),
        earlier=tuple(
            words
            for (words, _), m in zip(parts[: max(last, 0)], messages, strict=False)
            if m.get("role") in ("user", "assistant")
        ),
        tool_results=tuple(
            text for text, m in zip(texts[last + 1 :], messages[last + 1 :], strict=True) if m.get("role") == "tool"
        ),
        searches=sum(m.get("name") == _WEB_SEARCH for m in messages[last + 1 :]),
        input_tokens=sum(tokens),
        cached_tokens=sum(tokens[:-1]),
    )


def reply_to(body: Mapping[str, Any], model: Model, talk: SimulatedConversation, wish: Directives) -> SimulatedReply:
    """The answer to a request that is in order."""
    reasoning = _reasoning(body, model, talk)
    call = _tool_call(body, talk, wish)
    found = () if call else _found(body, talk)
    text = "" if call else _text(body, model, talk, wish)
    if found and "response_format" not in body:
        text += f" The web search found {_number(len(found), 'page')}, see [{found[0]['refer']}]."
    bound = body.get("max_completion_tokens") or body.get("max_tokens") or model.max_output or model.context_window
    finish = "tool_calls" if call else "stop"
    if wish.length:
        text, finish = text[: len(text) // 2], "length"
    elif count_tokens(text) > bound:
        text, finish = text[: bound * _CHARS_PER_TOKEN], "length"
    reasoning_tokens = count_tokens(reasoning)
    return SimulatedReply(
        text=text,
        reasoning=reasoning,
        tool_calls=(call,) if call else (),
        finish=finish,
        input_tokens=talk.input_tokens,
        cached_tokens=talk.cached_tokens,
        output_tokens=count_tokens(text)
        + sum(count_tokens(arguments) for _, arguments in [call or ("", "")])
        + reasoning_tokens,
        reasoning_tokens=reasoning_tokens,
        search_results=found,
    )


def wishes(talk: SimulatedConversation) -> Directives:
    """The directives of the prompt; once its tool has answered, it is not asked for again."""
    wish = read_directives(talk.prompt)
    return Directives() if wish.tool and talk.tool_results else wish


def count_tokens(text: str) -> int:
    """As many as a vendor might count: one for four characters."""
    return ceil(len(text) / _CHARS_PER_TOKEN)


def search_results(query: str, count: int) -> tuple[dict[str, str], ...]:
    """So many pages that there are not."""
    return tuple(
        {
            "title": f"Simulated page {number} on {query}",
            "link": f"https://example.com/simulated/{number}",
            "content": f"Simulated words on {query}, number {number}.",
            "media": "Simulator",
            "icon": "",
            "refer": f"ref_{number}",
            "publish_date": "2026-01-01",
        }
        for number in range(1, count + 1)
    )


def _reasoning(body: Mapping[str, Any], model: Model, talk: SimulatedConversation) -> str:
    if not thinks(body, model):
        return ""
    effort = f" at effort {body['reasoning_effort']}" if body.get("reasoning_effort") else ""
    return f"Simulated reasoning about {_number(len(_prompt(talk).split()), 'word')}{effort}."


def _text(body: Mapping[str, Any], model: Model, talk: SimulatedConversation, wish: Directives) -> str:
    """The answer's words, or JSON where that is asked for."""
    wanted = (body.get("response_format") or {}).get("type", "text")
    if wanted == "text":
        return _answer(model, talk) if wish.say is None else f"Simulated: {wish.say}"
    if wish.json is not None:
        return json.dumps(wish.json, ensure_ascii=False)
    schema = _schema(body, talk)
    made = value_for(schema) if schema else {"simulated": True, "answer": _answer(model, talk)}
    return json.dumps(made, ensure_ascii=False)


def _schema(body: Mapping[str, Any], talk: SimulatedConversation) -> Any:
    """The JSON Schema that the answer has to fit: the request's own, or the one that the system message tells."""
    told = (body["response_format"].get("json_schema") or {}).get("schema")
    begins = talk.system.rfind(SCHEMA_BEGINS)
    ends = talk.system.rfind(SCHEMA_ENDS)
    if told is not None or begins < 0 or ends < begins:
        return told
    try:
        return json.loads(talk.system[begins + len(SCHEMA_BEGINS) : ends])
    except ValueError:
        return None


def _found(body: Mapping[str, Any], talk: SimulatedConversation) -> tuple[dict[str, str], ...]:
    """What GLM's web search finds, where it is switched on and its pages are asked for."""
    for tool in body.get("tools") or ():
        settings = tool.get("web_search") or {}
        if tool.get("type") == "web_search" and settings.get("enable") and settings.get("search_result"):
            count = settings.get("count")
            query = str(settings.get("search_query") or _prompt(talk))
            return search_results(query, count if isinstance(count, int) else 3)
    return ()


def _answer(model: Model, talk: SimulatedConversation) -> str:
    """Says that it is simulated, and proves what it has read."""
    prompt = _prompt(talk)
    said = [f"Simulated answer from {model.id}: you wrote {_number(len(prompt.split()), 'word')}"]
    if prompt:
        said.append(f" beginning {_quoted(prompt)}")
    said.append(".")
    if talk.files:
        listed = "; ".join(
            f"{name} ({_number(len(text.splitlines()), 'line')}, first line {_quoted(text.partition(chr(10))[0])})"
            for name, text in talk.files
        )
        said.append(f" {_number(len(talk.files), 'file')} attached: {listed}.")
    if talk.images:
        said.append(f" {_number(talk.images, 'image')} attached.")
    if talk.system:
        said.append(f" The system message begins {_quoted(talk.system)}.")
    if talk.earlier:
        said.append(f" {_number(len(talk.earlier), 'earlier message')}, the first begins {_quoted(talk.earlier[0])}.")
    if talk.searches:
        said.append(f" The web was searched {_number(talk.searches, 'time')}.")
    else:
        said += [f" A tool answered {_quoted(result)}." for result in talk.tool_results]
    return "".join(said)


def _tool_call(body: Mapping[str, Any], talk: SimulatedConversation, wish: Directives) -> tuple[str, str] | None:
    """The call that the prompt asks for, by a directive or by words such as 'use the echo tool'."""
    if talk.tool_results:
        return None
    for tool in body.get("tools") or ():
        function = tool.get("function") or {}
        name = str(function.get("name"))
        if tool.get("type") == "builtin_function" and wish.tool in (None, name):
            return name, _search_arguments(talk)
        asked = re.search(rf"\b(call|use)\s+(the\s+)?(tool\s+)?{re.escape(name)}\b", talk.prompt, re.IGNORECASE)
        if name == wish.tool or (wish.tool is None and asked):
            arguments = wish.args if wish.args is not None else _arguments(function.get("parameters") or {}, talk)
            return name, json.dumps(arguments, ensure_ascii=False)
    return None


def _search_arguments(talk: SimulatedConversation) -> str:
    """What Kimi's built-in search is called with: the search, and what its pages will cost."""
    search_id = f"sim-{len(_prompt(talk))}"
    return json.dumps({"search_result": {"search_id": search_id}, "usage": {"total_tokens": talk.input_tokens + 100}})


def _arguments(schema: Mapping[str, Any], talk: SimulatedConversation) -> dict[str, Any]:
    """Something of the right kind for each required argument."""
    made: dict[str, Any] = {"string": _prompt(talk), "integer": 1, "number": 1.0, "boolean": True, "array": []}
    properties = schema.get("properties") or {}
    return {name: made.get(properties.get(name, {}).get("type"), {}) for name in schema.get("required") or ()}


def _prompt(talk: SimulatedConversation) -> str:
    return without_directives(talk.prompt)


def _take_apart(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A message's own words, and name and text of each file in it; looks at no place twice, as with directives."""
    words, files, at = [], [], 0
    for begins in _FILE_BEGINS.finditer(text):
        if begins.start() < at:
            continue  # within a file
        ends = f"\n</{begins[1]}>"
        end = text.find(ends, begins.end())
        if end < 0:
            break
        words.append(text[at : begins.start()])
        files.append((unescape(begins[2]), text[begins.end() : end]))
        at = end + len(ends)
    return "".join([*words, text[at:]]).strip(), files


def _words_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or () if part.get("type") == "text")


def _images_in(message: Mapping[str, Any]) -> int:
    content = message.get("content")
    return 0 if isinstance(content, str) else sum(part.get("type") == "image_url" for part in content or ())


def _number(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= 60 else f'"{line[:60]}…"'
