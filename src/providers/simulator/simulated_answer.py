"""Parses a request's conversation and generates the simulator's answer. Pure and deterministic."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from math import ceil
from typing import Any, Final

from ...protocol.json_text import InvalidJsonError, parse_json
from ...protocol.tool_call import Usage
from ..model import Model
from ..request_body import SCHEMA_BEGINS, SCHEMA_ENDS
from . import simulator_script
from .directives import Directives, read_directives, without_directives
from .schema_example import value_for
from .vendor_rules import thinks

_FILE_BEGINS: Final = re.compile(r'<(file(?:-\d+)?) name="([^"]*)">\n')
_CHARS_PER_TOKEN: Final = 4
_WEB_SEARCH: Final = "$web_search"
"""Kimi's built-in search."""


@dataclass(frozen=True, slots=True)
class SimulatedConversation:
    """A request's parsed messages."""

    prompt: str
    """The text of the last user message, without files but with directives."""
    files: tuple[tuple[str, str], ...]
    """Name and text of every attached file."""
    images: int
    system: str
    earlier: tuple[str, ...]
    """The texts of the user and assistant messages before the last user message."""
    tool_results: tuple[str, ...]
    """Tool results after the last user message."""
    searches: int
    """The number of tool results from Kimi's web search."""
    input_tokens: int
    cached_tokens: int
    """The tokens of the messages before the last one, which a vendor would have in its cache."""
    script_prompt: str = ""
    """The text of the last user message that contains a script, else of the last system message that contains one, else
    empty.
    """
    turn: int = 0
    """The number of assistant messages after the message with the script."""


@dataclass(frozen=True, slots=True)
class SimulatedReply:
    """The simulator's answer, independent of a vendor's format."""

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
    """The results of GLM's web search."""


def read_conversation(messages: Sequence[Mapping[str, Any]]) -> SimulatedConversation:
    """Parses a request's ``messages``."""
    texts = [_text_of(message) for message in messages]
    parts = [_split_files(text) for text in texts]
    last = max((i for i, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    tokens = [count_tokens(text) for text in texts]
    scripted = _scripted_message(messages, [words for words, _ in parts])
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
        script_prompt="" if scripted is None else parts[scripted][0],
        turn=0 if scripted is None else sum(m.get("role") == "assistant" for m in messages[scripted + 1 :]),
    )


def _scripted_message(messages: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> int | None:
    """Returns the index of the message with the script that applies."""
    for role in ("user", "system"):
        for index in reversed(range(len(messages))):
            if messages[index].get("role") == role and simulator_script.OPENING in texts[index]:
                return index
    return None


def reply_to(
    body: Mapping[str, Any], model: Model, conversation: SimulatedConversation, directives: Directives
) -> SimulatedReply:
    """Returns the answer to a valid request."""
    reasoning = _reasoning(body, model, conversation, directives)
    calls = _tool_calls(body, conversation, directives)
    results = () if calls else _search_results(body, conversation)
    text = "" if calls else _text(body, model, conversation, directives)
    if directives.turn is not None and directives.turn.text is not None:
        text = directives.turn.text
    if results and "response_format" not in body:
        text += f" The web search found {_number(len(results), 'page')}, see [{results[0]['refer']}]."
    bound = body.get("max_completion_tokens") or body.get("max_tokens") or model.max_output or model.context_window
    finish = "tool_calls" if calls else "stop"
    if directives.length:
        text, finish = text[: len(text) // 2], "length"
    elif bound is not None and count_tokens(text) > bound:
        text, finish = text[: bound * _CHARS_PER_TOKEN], "length"
    reasoning_tokens = count_tokens(reasoning)
    usage = directives.turn.usage if directives.turn is not None else None
    if usage is None:
        usage = Usage(
            input_tokens=conversation.input_tokens,
            output_tokens=count_tokens(text)
            + sum(count_tokens(arguments) for _, arguments in calls)
            + reasoning_tokens,
            reasoning_tokens=reasoning_tokens,
            cached_tokens=conversation.cached_tokens,
        )
    return SimulatedReply(
        text=text,
        reasoning=reasoning,
        tool_calls=calls,
        finish=finish,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        search_results=results,
    )


def read_prompt_directives(conversation: SimulatedConversation) -> Directives:
    """Returns the prompt's directives; none if the prompt's ``tool`` was already called. A prompt without directives
    continues the script of the conversation.
    """
    directives = read_directives(conversation.prompt)
    if directives == Directives() and conversation.script_prompt:
        return read_directives(conversation.script_prompt)
    return Directives() if directives.tool and conversation.tool_results else directives


def count_tokens(text: str) -> int:
    """Returns a plausible number of tokens: one per four characters."""
    return ceil(len(text) / _CHARS_PER_TOKEN)


def search_results(query: str, count: int) -> tuple[dict[str, str], ...]:
    """Returns ``count`` made-up pages."""
    return tuple(
        {
            "title": f"Simulated page {number} on {query}",
            "link": f"https://example.com/simulated/{number}",
            "content": f"Simulated text on {query}, number {number}.",
            "media": "Simulator",
            "icon": "",
            "refer": f"ref_{number}",
            "publish_date": "2026-01-01",
        }
        for number in range(1, count + 1)
    )


def _reasoning(
    body: Mapping[str, Any], model: Model, conversation: SimulatedConversation, directives: Directives
) -> str:
    if not thinks(body, model):
        return ""
    if directives.turn is not None and directives.turn.reasoning is not None:
        return directives.turn.reasoning
    effort = f" at effort {body['reasoning_effort']}" if body.get("reasoning_effort") else ""
    return f"Simulated reasoning about {_number(len(_prompt(conversation).split()), 'word')}{effort}."


def _text(body: Mapping[str, Any], model: Model, conversation: SimulatedConversation, directives: Directives) -> str:
    """Returns the answer's text, or JSON if the request asks for it."""
    response_format = (body.get("response_format") or {}).get("type", "text")
    if response_format == "text":
        return _answer(model, conversation) if directives.say is None else f"Simulated: {directives.say}"
    if directives.json is not None:
        return json.dumps(directives.json, ensure_ascii=False)
    schema = _schema(body, conversation)
    value = value_for(schema) if schema else {"simulated": True, "answer": _answer(model, conversation)}
    return json.dumps(value, ensure_ascii=False)


def _schema(body: Mapping[str, Any], conversation: SimulatedConversation) -> Any:
    """Returns the JSON Schema of the answer, from the request's parameter or the system message."""
    parameter = (body["response_format"].get("json_schema") or {}).get("schema")
    begins = conversation.system.rfind(SCHEMA_BEGINS)
    ends = conversation.system.rfind(SCHEMA_ENDS)
    if parameter is not None or begins < 0 or ends < begins:
        return parameter
    try:
        return parse_json(conversation.system[begins + len(SCHEMA_BEGINS) : ends])
    except InvalidJsonError:
        return None


def _search_results(body: Mapping[str, Any], conversation: SimulatedConversation) -> tuple[dict[str, str], ...]:
    """Returns the results of GLM's web search if it is enabled and its results are requested."""
    for tool in body.get("tools") or ():
        settings = tool.get("web_search") or {}
        if tool.get("type") == "web_search" and settings.get("enable") and settings.get("search_result"):
            count = settings.get("count")
            query = str(settings.get("search_query") or _prompt(conversation))
            return search_results(query, count if isinstance(count, int) else 3)
    return ()


def _answer(model: Model, conversation: SimulatedConversation) -> str:
    """Returns an answer that says that it is simulated and describes the request."""
    prompt = _prompt(conversation)
    sentences = [f"Simulated answer from {model.id}: you wrote {_number(len(prompt.split()), 'word')}"]
    if prompt:
        sentences.append(f", beginning with {_quoted(prompt)}")
    sentences.append(".")
    if conversation.files:
        listed = "; ".join(
            f"{name} ({_number(len(text.splitlines()), 'line')}, first line {_quoted(text.partition(chr(10))[0])})"
            for name, text in conversation.files
        )
        sentences.append(f" {_number(len(conversation.files), 'file')} attached: {listed}.")
    if conversation.images:
        sentences.append(f" {_number(conversation.images, 'image')} attached.")
    if conversation.system:
        sentences.append(f" The system message begins {_quoted(conversation.system)}.")
    if conversation.earlier:
        sentences.append(
            f" {_number(len(conversation.earlier), 'earlier message')}, "
            f"the first begins {_quoted(conversation.earlier[0])}."
        )
    if conversation.searches:
        sentences.append(f" The web was searched {_number(conversation.searches, 'time')}.")
    else:
        sentences += [f" A tool answered {_quoted(result)}." for result in conversation.tool_results]
    return "".join(sentences)


def _tool_calls(
    body: Mapping[str, Any], conversation: SimulatedConversation, directives: Directives
) -> tuple[tuple[str, str], ...]:
    """Returns the script's tool calls in a scripted turn (none if the request allows none), otherwise the call from
    ``_tool_call``, if any.
    """
    if directives.turn is not None:
        allowed = body.get("tools") and body.get("tool_choice") != "none"
        return directives.turn.calls if allowed else ()
    call = _tool_call(body, conversation, directives)
    return () if call is None else (call,)


def _tool_call(
    body: Mapping[str, Any], conversation: SimulatedConversation, directives: Directives
) -> tuple[str, str] | None:
    """Returns the tool call requested by a directive or by a phrase such as 'use the echo tool'."""
    choice = body.get("tool_choice")
    if conversation.tool_results or choice == "none":
        return None
    for tool in body.get("tools") or ():
        function = tool.get("function") or {}
        name = str(function.get("name"))
        if tool.get("type") == "builtin_function" and directives.tool in (None, name):
            return name, _search_arguments(conversation)
        match = re.search(rf"\b(call|use)\s+(the\s+)?(tool\s+)?{re.escape(name)}\b", conversation.prompt, re.IGNORECASE)
        if name == directives.tool or (directives.tool is None and (match or choice == "required")):
            arguments = (
                directives.args
                if directives.args is not None
                else _arguments(function.get("parameters") or {}, conversation)
            )
            return name, json.dumps(arguments, ensure_ascii=False)
    return None


def _search_arguments(conversation: SimulatedConversation) -> str:
    """Returns the arguments of Kimi's built-in search: the search id, and the tokens of its results."""
    search_id = f"sim-{len(_prompt(conversation))}"
    return json.dumps(
        {"search_result": {"search_id": search_id}, "usage": {"total_tokens": conversation.input_tokens + 100}}
    )


def _arguments(schema: Mapping[str, Any], conversation: SimulatedConversation) -> dict[str, Any]:
    """Returns a value of the right type for each required argument."""
    examples: dict[str, Any] = {
        "string": _prompt(conversation),
        "integer": 1,
        "number": 1.0,
        "boolean": True,
        "array": [],
    }
    properties = schema.get("properties") or {}
    return {name: examples.get(properties.get(name, {}).get("type"), {}) for name in schema.get("required") or ()}


def _prompt(conversation: SimulatedConversation) -> str:
    return without_directives(conversation.prompt)


def _split_files(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Returns a message's text without its files, and the name and text of each file. Takes linear time."""
    words, files, at = [], [], 0
    for begins in _FILE_BEGINS.finditer(text):
        if begins.start() < at:
            continue  # inside a file
        ends = f"\n</{begins[1]}>"
        end = text.find(ends, begins.end())
        if end < 0:
            break
        words.append(text[at : begins.start()])
        files.append((unescape(begins[2]), text[begins.end() : end]))
        at = end + len(ends)
    return "".join([*words, text[at:]]).strip(), files


def _text_of(message: Mapping[str, Any]) -> str:
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
