"""What a client is told of the daemon when it connects, for whoever reads it to a model. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from .tool_catalog import ToolsetView

MAX_BYTES: Final = 2047
"""As UTF-8: clients of MCP read no more than 2 KB."""

_LISTED_BYTES: Final = 400
"""For the names of the tools that are listed, where most are not."""


def instructions(selection: ToolsetView, *, simulated: bool) -> str:
    """Which tools the session has, how they are shown and how they go together, by what is really there, in
    ``MAX_BYTES`` at most.

    The same text for every transport, and for the tool ``00_INIT``. ``simulated``: no vendor is asked, the simulator
    answers.
    """
    classic = selection.toolset.presentation == "classic"
    opening = f"toold answers tool calls. This session has the toolset {selection.toolset.name!r}: "
    sentences = [*_presented(selection), *_advice(selection, simulated=simulated)]
    closing = "".join(f"\n{sentence}" for sentence in sentences)
    room = MAX_BYTES - len(opening.encode()) - len(closing.encode())
    if classic:
        return opening + _list(list(selection.tools), room, "list_tools has them") + closing
    return opening + _modules(selection, room) + closing


def _modules(selection: ToolsetView, room: int) -> str:
    """How many functions each module has."""
    modules = [f"{name} ({len(functions)})" for name, functions in selection.stubs.modules.items()]
    counted = f"{len(selection.tools)} tools, as functions in modules: "
    return counted + _list(modules, room - len(counted), "read_stubs has them")


def _list(names: Sequence[str], room: int, where: str) -> str:
    """The names, as many as the room (in bytes) has."""
    if not names:
        return "no tools."
    whole = f"{', '.join(names)}."
    if len(whole.encode()) <= room:
        return whole
    ending = f" and more, {len(names)} in all; {where}."
    start = whole.encode()[: room - len(ending)].decode(errors="ignore")
    return start[: start.rfind(",")] + ending


def _presented(selection: ToolsetView) -> Iterable[str]:
    """How the tools are shown, and how to find those that are not."""
    presentation = selection.toolset.presentation
    if presentation == "classic":
        yield "Presentation: classic. Each tool is listed with its arguments."
        return
    listed = _list([info.name for info in selection.infos], _LISTED_BYTES, "list_tools has them")
    yield f"Presentation: {presentation}. Every tool can be called by its name, and few are listed: {listed}"
    if "search_tools" in selection.tools:
        yield "search_tools finds tools by a few words."
    if "read_stubs" in selection.tools:
        yield (
            "read_stubs, by names or a module, has the signatures of the functions; without arguments an index of all."
        )
    if "execute_code" in selection.tools:
        module = next(iter(selection.stubs.modules), "module")
        yield (
            f"execute_code runs a Python program that calls them (await {module}.function(argument=…)) "
            "and returns only what you need: one program for many calls."
        )


def _advice(selection: ToolsetView, *, simulated: bool) -> Iterable[str]:
    taking = {name for tool in selection.tools.values() for name in tool.info.input_schema.get("properties", {})}
    if "continuation_id" in taking:
        yield (
            "An answer with a continuation_id can be gone on with: give it to the next call of any tool that takes one."
        )
    if "next_step_required" in taking:
        yield (
            "Tools with step and next_step_required work in steps: you investigate and report what you found, each "
            "answer says what to look at next, and the last step asks an expert model once. One step alone works too."
        )
    if "model" in taking and "listmodels" in selection.tools:
        yield "model is an id or alias of listmodels, or auto; leave it out for the default."
    if simulated:
        yield "Kimi and GLM are SIMULATED here: their answers are made up by a local simulator and say so."
