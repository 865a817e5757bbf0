"""The instructions that clients get when they connect and pass on to their model. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..protocol.terminal_text import one_line
from .tool_catalog import ToolsetView

MAX_BYTES: Final = 2047
"""The maximum size in UTF-8: MCP clients read at most 2 KB."""

_LISTED_BYTES: Final = 400
"""The space for the names of listed tools, if most tools are not listed."""
_SOURCES_BYTES: Final = 1000
"""The space for the instructions of sources: half of the text, so that a source cannot displace the daemon's own
text.
"""
_MAX_SOURCES: Final = 5
"""The maximum number of quoted sources; the others are only named."""
_NAMED_BYTES: Final = 200
"""The space for the names of the sources that are not quoted."""
SOURCE_INSTRUCTIONS: Final = "toold://instructions/"
"""The prefix of the URI of the resource with a source's whole instructions; the source's name follows."""


def instructions(view: ToolsetView, *, simulated: bool) -> str:
    """Describes the session's tools, how they are presented and how to use them, in at most ``MAX_BYTES``.

    The text is the same for every transport and for the tool ``00_INIT``. ``simulated``: the simulator answers instead
    of vendors. The instructions of sources are at the end, each on a line that begins with the source's name.
    """
    classic = view.toolset.presentation == "classic"
    opening = f"toold answers tool calls. This session has the toolset {view.toolset.name!r}: "
    sentences = [*_presented(view), *_advice(view, simulated=simulated)]
    sentences += _of_sources(view.source_instructions)
    closing = "".join(f"\n{sentence}" for sentence in sentences)
    max_bytes = MAX_BYTES - len(opening.encode()) - len(closing.encode())
    if classic:
        return opening + _list(list(view.tools), max_bytes, "see list_tools") + closing
    return opening + _modules(view, max_bytes) + closing


def _modules(view: ToolsetView, max_bytes: int) -> str:
    """The number of functions per module, largest first, so that small modules are omitted if the space is short."""
    modules = [f"{name} ({count})" for name, count in view.stubs.sizes]
    counted = f"{len(view.tools)} tools, as functions in modules: "
    return counted + _list(modules, max_bytes - len(counted), "see read_stubs")


def _list(names: Sequence[str], max_bytes: int, where: str) -> str:
    """The names, as many as fit into ``max_bytes``."""
    if not names:
        return "no tools."
    whole = f"{', '.join(names)}."
    if len(whole.encode()) <= max_bytes:
        return whole
    ending = f" and more, {len(names)} in all; {where}."
    start = whole.encode()[: max_bytes - len(ending)].decode(errors="ignore")
    return start[: start.rfind(",")] + ending


def _presented(view: ToolsetView) -> Iterable[str]:
    """How tools are presented, and how to find tools that are not listed."""
    presentation = view.toolset.presentation
    if presentation == "classic":
        yield "Presentation: classic. Each tool is listed with its arguments."
        return
    listed = _list([info.name for info in view.infos], _LISTED_BYTES, "see list_tools")
    yield f"Presentation: {presentation}. Every tool can be called by its name, and few are listed: {listed}"
    if "search_tools" in view.tools:
        yield "search_tools finds tools by a few words."
    if "read_stubs" in view.tools:
        yield ("read_stubs, by names or a module, shows the functions' signatures; without arguments, an index of all.")
    if "execute_code" in view.tools:
        module = next(iter(view.stubs.modules), "module")
        yield (
            f"execute_code runs a Python program that calls them (await {module}.function(argument=…)) "
            "and returns only what you need: one program for many calls."
        )


def _advice(view: ToolsetView, *, simulated: bool) -> Iterable[str]:
    taking = {name for tool in view.tools.values() for name in tool.info.input_schema.get("properties", {})}
    if "continuation_id" in taking:
        yield (
            "To continue from an answer with a continuation_id, send it with the next call of any tool that takes one."
        )
    if "next_step_required" in taking:
        yield (
            "Tools with step and next_step_required work in steps: you investigate and report what you found, each "
            "answer says what to look at next, and the last step asks an expert model once. A single step works too."
        )
    if "model" in taking and "listmodels" in view.tools:
        yield "model is an id or alias of listmodels, or auto; omit it for the default."
    if simulated:
        yield "The models are SIMULATED here: a local simulator makes up their answers and says so."


def _of_sources(texts: Mapping[str, str]) -> list[str]:
    """The instructions of sources in ``_SOURCES_BYTES``; longer texts use the space that short texts leave."""
    lines = {
        name: f"The source {name} says about its tools: {one_line(text, MAX_BYTES)}"
        for name, text in list(texts.items())[:_MAX_SOURCES]
    }
    others = list(texts)[_MAX_SOURCES:]
    named = f"What other sources say is in {SOURCE_INSTRUCTIONS}NAME: {', '.join(others)}"
    ending = [_cut(named, _NAMED_BYTES)] if others else []
    left = _SOURCES_BYTES - sum(len(line.encode()) for line in ending)
    for number, name in enumerate(sorted(lines, key=lambda name: len(lines[name].encode()))):
        lines[name] = _cut(lines[name], left // (len(lines) - number), f"… (see {SOURCE_INSTRUCTIONS}{name})")
        left -= len(lines[name].encode())
    return [*lines.values(), *ending]


def _cut(line: str, max_bytes: int, ending: str = "…") -> str:
    """The line, or its beginning and the ending."""
    encoded = line.encode()
    if len(encoded) <= max_bytes:
        return line
    return encoded[: max_bytes - len(ending.encode())].decode(errors="ignore") + ending
