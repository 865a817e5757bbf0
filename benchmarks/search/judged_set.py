"""Tasks with the tools that are right for them, and the tools of five APIs to find them among.

``apis/*.tsv`` describes the operations of five vendors: ids, methods, paths and names of arguments are theirs, the
summaries are ours. ``tasks.txt`` has the tasks as users and models word them. Each third one is held out: the ranking
was tuned with the others only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toold.protocol.tool_call import ToolInfo
from toold.sources.openapi.api_reader import read_api
from toold.sources.openapi.openapi_source import annotations_of
from toold.tools import load_registry
from toold.tools.search_fields import RankedTool
from toold.tools.tool_ranking import ToolIndex, rank

_DIRECTORY: Final = Path(__file__).parent
_URL: Final = "https://api.example/openapi.json"
HELD_OUT: Final = 3
"""The last of so many successive tasks is held out."""
_BOILERPLATE: Final = {
    "github": "Tokens with fine-grained permissions need access to the repository or organization for this request. "
    "Apps act as the user who installed them.",
    "jira": "The user needs the global permission to administer Jira, or the permission to browse the project of the "
    "issue. Apps need a scope to read or to write.",
    "stripe": "The answer is the object; fields that are not sent keep their value. Customers, payments and "
    "subscriptions that it refers to can be expanded.",
    "kubernetes": "The object has metadata, a spec and a status; changes need rights on the resource in its namespace.",
}
"""Documents repeat such sentences for most operations."""
_PARAMETER: Final = {
    "kubernetes": ("pretty", "dryRun", "fieldManager", "fieldSelector", "labelSelector", "limit", "resourceVersion"),
    "github": ("per_page", "page"),
    "jira": ("startAt", "maxResults", "expand"),
    "stripe": ("expand", "limit", "starting_after"),
}
_LOCATION: Final = "The id of the location, the sub-account that the contact or the user belongs to."


@dataclass(frozen=True, slots=True)
class JudgedTask:
    """What a user wants to do, and the names of the tools that do it."""

    vendor: str
    query: str
    right: frozenset[str]
    held_out: bool


@dataclass(frozen=True, slots=True)
class Score:
    """How many tasks have a right tool first, and among the first three."""

    tasks: int
    first: int
    among_three: int

    @property
    def top_1(self) -> float:
        """The share of tasks whose first result is right."""
        return self.first / self.tasks

    @property
    def top_3(self) -> float:
        """The share of tasks with a right tool among the first three."""
        return self.among_three / self.tasks


def judged_tasks(path: Path = _DIRECTORY / "tasks.txt") -> list[JudgedTask]:
    """All tasks; ``query => tool tool`` below a ``[vendor]``. One with ``*`` was seen in tuning and is not held out."""
    tasks: list[JudgedTask] = []
    vendor = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            vendor = line.strip("[]")
        elif line:
            query, _, right = line.partition(" => ")
            held_out = len(tasks) % HELD_OUT == HELD_OUT - 1 and not query.startswith("* ")
            tasks.append(JudgedTask(vendor, query.removeprefix("* "), frozenset(right.split()), held_out))
    return tasks


def judged_tools() -> list[RankedTool]:
    """The tools that toold ships, and those of the five APIs."""
    tools = [RankedTool(tool.info, tool.source) for tool in load_registry().tools]
    for path in sorted((_DIRECTORY / "apis").glob("*.tsv")):
        for source, rows in _sections(path):
            tools += api_tools(source, _document(path.stem, rows))
    return tools


def api_tools(source: str, document: dict[str, Any]) -> Iterator[RankedTool]:
    """The tools of an OpenAPI document, as its source makes them."""
    api = read_api({_URL: document}, _URL, prefix=source, absent={}, base_url=None, secret_at=None)
    for operation in api.operations:
        info = ToolInfo(
            operation.name, operation.description, operation.arguments.schema, annotations_of(operation.method)
        )
        yield RankedTool(info, source)


def positions(tools: Sequence[RankedTool], tasks: Iterable[JudgedTask]) -> dict[JudgedTask, int | None]:
    """The position of the first right tool of each task, from 1; None if none is found."""
    index = ToolIndex(tools)
    places: dict[JudgedTask, int | None] = {}
    for task in tasks:
        names = [info.name for info, _ in rank(task.query, index)]
        places[task] = next((place for place, name in enumerate(names, 1) if name in task.right), None)
    return places


def score(places: Iterable[int | None]) -> Score:
    """The score of these positions."""
    known = list(places)
    return Score(len(known), known.count(1), sum(place is not None and place <= 3 for place in known))


def _sections(path: Path) -> Iterator[tuple[str, list[list[str]]]]:
    for section in path.read_text(encoding="utf-8").split("[")[1:]:
        source, _, rows = section.partition("]\n")
        yield source, [row.split("\t") for row in rows.splitlines()]


def _document(vendor: str, rows: Iterable[Sequence[str]]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation_id, method, path, summary, *arguments in rows:
        names = " ".join(arguments).split()
        paths.setdefault(path, {})[method.lower()] = _operation(vendor, operation_id, method, path, summary, names)
    return {"openapi": "3.1.0", "info": {"title": vendor, "version": "1"}, "servers": [{"url": _URL}], "paths": paths}


def _operation(
    vendor: str, operation_id: str, method: str, path: str, summary: str, names: Sequence[str]
) -> dict[str, Any]:
    in_path = re.findall(r"\{([^}]+)\}", path)
    query = [*_PARAMETER.get(vendor, ()), *(names if method == "GET" else ())]
    parameters = [_parameter(name, "path", required=True) for name in in_path]
    parameters += [_parameter(name, "query") for name in query if name not in in_path]
    operation: dict[str, Any] = {"operationId": operation_id, "summary": summary, "parameters": parameters}
    if vendor in _BOILERPLATE:
        operation["description"] = _BOILERPLATE[vendor]
    fields = {name: _text(name) for name in names if name not in in_path}
    if vendor == "highlevel" and "locationId" not in in_path:
        fields["locationId"] = {"type": "string", "description": _LOCATION}
    if method != "GET" and fields:
        schema = {"type": "object", "properties": fields}
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return operation


def _parameter(name: str, where: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": where, "required": required, "schema": _text(name)}


def _text(name: str) -> dict[str, Any]:
    words = " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)).lower()
    return {"type": "string", "description": f"The {words} of the object."}
