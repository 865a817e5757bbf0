"""The page Tools, and the page of a tool: its form, a trial call, the call's questions, and the call as texts to
copy."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....dashboard import FormArguments, argument_form, call_snippets, form_arguments, shown_result
from ....protocol.error_codes import NotFoundError, PermissionDeniedError
from ....protocol.questions.question_table import OpenQuestion
from ....protocol.terminal_text import terminal_safe
from ....protocol.tool_call import ToolResult
from ...dispatch import Router
from .dashboard_port import DashboardPort, Viewer
from .event_response import EventResponse, server_sent_event
from .page_answers import PageAnswers
from .page_guard import Form, PageGuard, page_host
from .tool_list import SeenTool, find_seen, hints, ranked, seen_tools, tool_row
from .tool_trial import ToolTrials
from .trial_questions import answer_of, question_values

MAX_QUERY_CHARS: Final = 200
PAGE_TOOLS: Final = 150


class ToolPages:
    """The pages of tools."""

    def __init__(self, answers: PageAnswers, data: DashboardPort, router: Router) -> None:
        self._answers = answers
        self._data = data
        self._router = router
        self._trials = ToolTrials(router)

    def routes(self, guard: PageGuard) -> list[Route]:
        return [
            Route("/ui/tools", guard.page(self._list)),
            Route("/ui/tools/{name}", guard.page(self._tool)),
            Route("/ui/tools/{name}/snippets", guard.action(self._snippets, large=True), methods=["POST"]),
            Route("/ui/tools/{name}/call", guard.action(self._call, large=True), methods=["POST"]),
            Route("/ui/tools/{name}/answer", guard.action(self._answer, large=True), methods=["POST"]),
        ]

    async def _list(self, request: Request, viewer: Viewer) -> Response:
        text = terminal_safe(request.query_params.get("text", "")).strip()
        source = request.query_params.get("source", "")
        begin = _number(request.query_params.get("begin", ""))
        problem = None
        if len(text) > MAX_QUERY_CHARS:
            problem, text = f"At most {MAX_QUERY_CHARS} characters; this search is ignored.", ""
        catalog = self._router.catalog
        tools = seen_tools(catalog, viewer)
        sources = sorted({tool.source for tool in tools.values()})
        names = await asyncio.to_thread(ranked, catalog, viewer, text) if text else list(tools)
        found = [tool for name in names if (tool := tools.get(name)) is not None and source in {"", tool.source}]
        usage = await self._data.tool_usage(viewer.sees)
        return self._answers.page(
            "tools",
            viewer,
            current="tools",
            text=text,
            source=source if source in sources else "",
            sources=sources,
            problem=problem,
            tools=[tool_row(tool, usage) for tool in found[begin : begin + PAGE_TOOLS]],
            total=len(found),
            next_url=None
            if begin + PAGE_TOOLS >= len(found)
            else "/ui/tools?" + urlencode({"text": text, "source": source, "begin": begin + PAGE_TOOLS}),
        )

    async def _tool(self, request: Request, viewer: Viewer) -> Response:
        seen = find_seen(self._router.catalog, viewer, request.path_params["name"])
        tool = seen.tool
        usage = (await self._data.tool_usage(viewer.sees)).get(tool.name)
        return self._answers.page(
            "tool",
            viewer,
            current="tools",
            tool=tool,
            hints=hints(tool),
            usage=usage,
            callable=seen.toolset is not None,
            form=argument_form(tool.info.input_schema),
            schema=tool.info.input_schema,
            problems=(),
            snippets=call_snippets(tool.name, {}, _address(request)),
        )

    async def _snippets(self, request: Request, viewer: Viewer, form: Form) -> Response:
        seen = find_seen(self._router.catalog, viewer, request.path_params["name"])
        read = await _read(seen, form)
        return self._answers.fragment(
            "tool_snippets",
            viewer,
            problems=read.problems,
            snippets=call_snippets(seen.tool.name, read.arguments, _address(request)),
        )

    async def _call(self, request: Request, viewer: Viewer, form: Form) -> Response:
        """Calls the tool: events for a script, otherwise a page once the call has ended."""
        seen = find_seen(self._router.catalog, viewer, request.path_params["name"])
        if seen.toolset is None:
            raise PermissionDeniedError(seen.tool.withheld or "No toolset of your token has this tool.")
        read = await _read(seen, form)
        streams = "text/event-stream" in request.headers.get("accept", "")
        if read.problems:
            values: dict[str, Any] = {"result": None, "call_id": None, "problems": read.problems}
            return (
                EventResponse(_refused(self._part(viewer, values))) if streams else self._page_of(viewer, seen, values)
            )
        size = sum(len(name) + len(value) for name, value in form.items())

        values = dict[str, Any]()

        def shown(result: ToolResult, call_id: str | None) -> str:
            values.update(result=shown_result(result), call_id=call_id, problems=[])
            return self._part(viewer, values) if streams else ""

        def asked(entry: OpenQuestion) -> str:
            return self._answers.part("tool_question", viewer, **question_values(entry, seen.tool.name))

        name, questions = seen.tool.name, asked if streams else None
        events = self._trials.run(viewer, seen.toolset, name, read.arguments, size, shown, questions)
        if streams:
            return EventResponse(events)
        async with aclosing(events) as source:
            async for _ in source:
                pass
        return self._page_of(viewer, seen, values)

    async def _answer(self, _: Request, viewer: Viewer, form: Form) -> Response:
        """Answers a question of a viewer's call."""
        found = self._router.questions.find(form.get("token", ""), viewer.principal)
        if found is None:
            raise NotFoundError("This question is no longer open: it was answered, or its call has ended.")
        entry, _call = found
        self._router.questions.answer(entry, answer_of(entry, form))
        return Response(status_code=204)

    def _part(self, viewer: Viewer, values: Mapping[str, Any]) -> str:
        return self._answers.part("tool_result", viewer, **values)

    def _page_of(self, viewer: Viewer, seen: SeenTool, values: Mapping[str, Any]) -> Response:
        return self._answers.page("tool_called", viewer, current="tools", tool=seen.tool, **values)


async def _read(seen: SeenTool, form: Form) -> FormArguments:
    """The arguments of a form. A thousand values take milliseconds, so large forms are read in a thread."""
    fields = argument_form(seen.tool.info.input_schema)
    if len(form) > 200:
        return await asyncio.to_thread(form_arguments, fields, form)
    return form_arguments(fields, form)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 0


async def _refused(html: str) -> AsyncGenerator[bytes, None]:
    yield server_sent_event("result", html.encode(errors="replace"))


def _address(request: Request) -> str:
    """The address at which the browser reaches the HTTP port."""
    scheme = request.headers.get("x-forwarded-proto", request.url.scheme)
    return f"{'https' if scheme == 'https' else 'http'}://{terminal_safe(page_host(request))[:200]}"
