"""A task with three of many tools, by presentation: find a contact, list her open tickets, make an appointment.

Everything counts once, when it enters the model's context: the instructions, the listing in the form of model APIs
(name, description, input schema), the model's output, and the results. A conversation sends its beginning again with
every turn, so in practice the listing weighs more, and code mode saves more, than shown here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from toold.protocol.tool_call import TextContent, ToolInfo
from toold.tools import (
    Presentation,
    ToolCatalog,
    ToolContext,
    ToolRegistry,
    Toolset,
    ToolsetView,
    bind,
    content,
    instructions,
    load_registry,
)
from toold.tools.toolsets import CODE_TOOLS, INIT_TOOL

from .synthetic import synthetic_tools

AIMS: Final = {100: 0.90, 250: 0.96}
"""The minimum share of the cost of ``classic`` that code mode saves, by number of tools."""
WAYS: Final[tuple[Presentation, ...]] = ("classic", "hybrid", "code")
_LISTED: Final = ("crm_search_contact", "files_search_document", "messages_create_channel")
"""The tools that ``hybrid`` lists in addition to those of ``code``; the task needs one of them."""

_PERSON: Final = {"id": "C-4", "name": "Ada Lovelace", "status": "open", "owner_id": "U-7", "labels": ["vip", "uk"]}
_TICKETS: Final = [
    {"id": f"T-{number}", "name": name, "status": "open", "owner_id": "U-7", "due_at": f"2026-03-0{number}T17:00:00Z"}
    for number, name in enumerate(("Cards jam", "Loops twice", "Wrong note", "Reader is slow", "Manual missing"), 1)
]
_EVENT: Final = {"id": "E-9", "name": "Call Ada Lovelace about T-1", "status": "open", "due_at": "2026-03-01T10:00:00Z"}
_CALLS: Final[Sequence[tuple[str, dict[str, Any], Any]]] = (
    ("crm_search_contact", {"query": "Ada Lovelace", "limit": 1}, [_PERSON]),
    ("tickets_search_ticket", {"query": "Ada Lovelace", "status": "open", "sort": "updated"}, _TICKETS),
    ("calendar_create_event", {"name": _EVENT["name"], "due_at": _EVENT["due_at"]}, _EVENT),
)
"""Tool, arguments, result."""
_SEARCHES: Final = ("search contacts", "search support tickets", "create calendar event")
_PROGRAM: Final = """\
people = await crm.search_contact(query="Ada Lovelace", limit=1)
found = await tickets.search_ticket(query=people[0]["name"], status="open", sort="updated")
event = await calendar_.create_event(
    name=f"Call {people[0]['name']} about {found[0]['id']}", due_at="2026-03-01T10:00:00Z"
)
return {"event": event["id"], "tickets": [ticket["id"] for ticket in found]}
"""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts that enter the model's context."""

    listing: list[str]
    """The instructions and the listing."""
    use: list[str]
    """The searches, the calls and their results."""


async def texts(presentation: Presentation, count: int) -> Texts:
    """The texts of a presentation with ``count`` synthetic tools and the built-in tools that it needs."""
    selection = _selection(presentation, count)
    listing = [instructions(selection, simulated=False), *map(definition, selection.infos)]
    if presentation == "classic":
        use = [text for name, arguments, result in _CALLS for text in (_call(name, arguments), json.dumps(result))]
    else:
        use = await _found(selection) + _ran()
    return Texts(listing, use)


def _selection(presentation: Presentation, count: int) -> ToolsetView:
    needed = (INIT_TOOL,) if presentation == "classic" else CODE_TOOLS
    own = [tool for tool in load_registry().tools if tool.name in needed]
    listed = _LISTED if presentation == "hybrid" else ()
    toolset = Toolset(presentation, ("*",), (), presentation, listed)
    return ToolCatalog(ToolRegistry([*own, *synthetic_tools(count)]), {presentation: toolset}, presentation).view(
        presentation
    )


def definition(info: ToolInfo) -> str:
    """A tool in the form of model APIs."""
    return json.dumps({"name": info.name, "description": info.description, "input_schema": info.input_schema})


def _call(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments})


async def _found(selection: ToolsetView) -> list[str]:
    """A search for each tool, and the three signatures, with the tools' real answers."""
    asked: list[tuple[str, dict[str, Any]]] = [("search_tools", {"query": query}) for query in _SEARCHES]
    asked.append(("read_stubs", {"names": [name for name, _, _ in _CALLS]}))
    said = []
    for name, arguments in asked:
        tool = selection.tools[name]
        returned = await tool.run(bind(tool, arguments), cast("ToolContext", _Asking(selection)))
        outputs, _ = content(returned, tool=name)
        said += [_call(name, arguments), "".join(block.text for block in outputs if isinstance(block, TextContent))]
    return said


def _ran() -> list[str]:
    """The program, and the answer of ``execute_code``: its value and the calls that it made."""
    calls = [{"tool": name, "ms": 87.3, "ok": True} for name, _, _ in _CALLS]
    value = {"event": _EVENT["id"], "tickets": [ticket["id"] for ticket in _TICKETS]}
    answer = {"value": value, "stdout": "", "calls": calls, "truncated": False}
    return [_call("execute_code", {"code": _PROGRAM}), json.dumps(answer)]


@dataclass(frozen=True, slots=True)
class _Asking:
    """The part of a tool context that the search tools use."""

    toolset_view: ToolsetView
