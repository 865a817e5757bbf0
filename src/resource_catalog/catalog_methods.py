"""MCP's methods about resources and prompts, for one caller at a time.

Lists are answered from memory and from local files. Reading a resource, getting a prompt and completing an argument
are calls: ``tool_for`` returns the tool that such a call runs, with the source's name, so that permits, rate limits,
deadlines, credentials and the audit apply to it (decision 117).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ..protocol.error_codes import InvalidArgumentsError, NotFoundError, PermissionDeniedError
from ..protocol.mcp.catalog_result import FOLLOWING_METHODS
from ..protocol.name_suggestions import close_names, did_you_mean
from ..protocol.tool_call import Annotations, Principal
from ..sources import ContentSource, Entry
from ..tools import OWN_SOURCE, FileAccess, JsonSchema, Tool, ToolContext, ToolOutput, ToolsetView
from .own_prompts import argument_choices, own_prompts, prompt_result
from .own_resources import OwnResources, paths_like
from .resource_followers import Follower, ResourceFollowers
from .resource_owners import owner_of, parse_qualified, shown_entries, visible_sources

PAGE: Final = 500
"""Entries per page, as for ``tools/list``."""
MAX_VALUES: Final = 100
"""MCP's limit on the values in one completion."""
MAX_URI_CHARS: Final = 8192
"""Enough for the longest URI of a source with its qualifying prefix, even if percent-encoding doubles its length."""
COMPLETION_TIMEOUT_S: Final = 10.0
"""People wait for a completion while they type."""

READ: Final = "resources/read"
PROMPT: Final = "prompts/get"
COMPLETE: Final = "completion/complete"
LISTS: Final[Mapping[str, str]] = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""The methods that return lists, and the field of the result that contains the list."""
CALLS: Final = (READ, PROMPT, COMPLETE)
"""The methods that are calls."""
_ANY_PARAMS: Final = JsonSchema({"type": "object"})
_READING: Final = Annotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""MCP defines these methods as read-only, so their calls are not journalled."""


class CatalogMethods:
    """Answers the methods. ``sources`` returns the sources in configured order."""

    def __init__(self, sources: Callable[[], Mapping[str, ContentSource]], own: OwnResources) -> None:
        self._sources = sources
        self._own = own

    def __repr__(self) -> str:
        return f"<CatalogMethods of {', '.join(self._sources()) or 'no sources'}>"

    def visible(self, view: ToolsetView) -> dict[str, ContentSource]:
        """The sources whose resources and prompts belong to a toolset."""
        return visible_sources(self._sources(), view)

    async def list(
        self, method: str, params: Mapping[str, Any], view: ToolsetView, principal: Principal, files: FileAccess
    ) -> dict[str, Any]:
        """The result of a method of ``LISTS``.

        Raises:
            InvalidArgumentsError: the cursor is invalid.
            ServiceUnavailableError: the disk cannot be read.
        """
        sources = self.visible(view)
        match method:
            case "resources/list":
                entries = [*shown_entries(sources, "uri"), *await self._own.entries(view, principal, files)]
            case "resources/templates/list":
                entries = [*shown_entries(sources, "uriTemplate"), *self._own.templates(view)]
            case _:
                entries = list(self._prompts(view, sources).values())
        start = _start(params.get("cursor"))
        page: dict[str, Any] = {LISTS[method]: entries[start : start + PAGE]}
        if start + PAGE < len(entries):
            page["nextCursor"] = f"from-{start + PAGE}"
        return page

    def tool_for(self, method: str, params: Mapping[str, Any], view: ToolsetView) -> Tool:
        """Returns the tool that runs ``READ``, ``PROMPT``, ``COMPLETE`` or a method of ``LISTS``. The tool's structured
        content is the method's result.

        Raises:
            InvalidArgumentsError: a parameter is missing or has the wrong type.
            NotFoundError: the caller has no such resource or prompt.
            PermissionDeniedError: the prompt is quarantined.
        """
        match method:
            case "resources/read":
                return self._read_tool(params, view)
            case "prompts/get":
                return self._prompt_tool(params, view)
            case "completion/complete":
                return self._completion_tool(params, view)
            case _:

                async def listed(context: ToolContext) -> dict[str, Any]:
                    return await self.list(method, params, view, context.principal, context.files)

                return _tool(method, listed)

    def method_tool(
        self,
        method: str,
        params: Mapping[str, Any],
        view: ToolsetView,
        followers: ResourceFollowers,
        follower: Follower,
    ) -> Tool:
        """Returns the tool that runs any of these methods, for a transport that supports only calls. Raises the errors
        of ``tool_for``.
        """
        if method not in FOLLOWING_METHODS:
            return self.tool_for(method, params, view)

        async def change(_: ToolContext) -> dict[str, Any]:
            followers.change(follower, method, params)
            return {}

        return _tool(method, change)

    def taken_prompts(self, source: str, view: ToolsetView) -> set[str]:
        """The names of all prompts except those of one source."""
        others = {name: other for name, other in self._sources().items() if name != source}
        return {*own_prompts(view), *(name for other in others.values() for name in other.latest.prompts)}

    # --- resources ---------------------------------------------------------------------------------------------------

    def _read_tool(self, params: Mapping[str, Any], view: ToolsetView) -> Tool:
        uri = _text(params, "uri")
        if len(uri) > MAX_URI_CHARS:
            raise InvalidArgumentsError(f"params.uri: has more than {MAX_URI_CHARS:,} characters.")
        sources = self.visible(view)
        owned = owner_of(sources, view.tools.values(), uri)
        if owned is None or not sources[owned.source].latest.reads or self._is_own(uri, sources):
            if parse_qualified(uri) is not None:
                raise NotFoundError(f"There is no resource {uri[:200]!r}; resources/list names them.")

            async def read(context: ToolContext) -> dict[str, Any]:
                return await self._own.read(uri, view, context.principal, context.files)

            return _tool(READ, read)
        source = sources[owned.source]
        may_be_own = uri.startswith("file:") and parse_qualified(uri) is None

        async def ask(context: ToolContext) -> dict[str, Any]:
            if may_be_own and await self._own.has_file(uri, view, context.files):
                return await self._own.read(uri, view, context.principal, context.files)
            result = await source.read_resource(owned.uri, context)
            return {**result, "contents": [_named(part, owned.uri, uri) for part in result["contents"]]}

        return _tool(READ, ask, owned.source, source.latest.timeout_s)

    def _is_own(self, uri: str, sources: Mapping[str, ContentSource]) -> bool:
        """Whether the daemon reads this URI itself: it is a file URI that no source lists."""
        return uri.startswith("file:") and not any(uri in source.latest.resources for source in sources.values())

    # --- prompts -----------------------------------------------------------------------------------------------------

    def _prompts(self, view: ToolsetView, sources: Mapping[str, ContentSource]) -> dict[str, Entry]:
        prompts = own_prompts(view)
        for source in sources.values():
            for name, prompt in source.latest.prompts.items():
                if prompt.withheld is None:
                    prompts.setdefault(name, prompt.entry)
        return prompts

    def _prompt_tool(self, params: Mapping[str, Any], view: ToolsetView) -> Tool:
        name = _text(params, "name")
        arguments = params.get("arguments") or {}
        if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
            raise InvalidArgumentsError("params.arguments: must be an object whose values are strings.")
        sources = self.visible(view)
        if name in own_prompts(view):

            async def make(_: ToolContext) -> dict[str, Any]:
                return prompt_result(view.tools[name], arguments)

            return _tool(PROMPT, make)
        for source_name, source in sources.items():
            prompt = source.latest.prompts.get(name)
            if prompt is not None and prompt.withheld is not None:
                raise PermissionDeniedError(prompt.withheld)
            if prompt is not None:
                return _tool(PROMPT, _asking(source, prompt.name, arguments), source_name, source.latest.timeout_s)
        hint = did_you_mean(close_names(name, self._prompts(view, sources))) or "prompts/list names them."
        raise InvalidArgumentsError(f"There is no prompt {name[:100]!r}; {hint}")

    # --- completion --------------------------------------------------------------------------------------------------

    def _completion_tool(self, params: Mapping[str, Any], view: ToolsetView) -> Tool:
        reference, argument = params.get("ref"), params.get("argument")
        if not isinstance(reference, dict) or not isinstance(argument, dict):
            raise InvalidArgumentsError("The parameters ref and argument must be objects.")
        name, value = _text(argument, "name", "params.argument"), argument.get("value", "")
        if not isinstance(value, str):
            raise InvalidArgumentsError("params.argument.value: must be a string.")
        sources = self.visible(view)
        match reference.get("type"):
            case "ref/prompt":
                prompt = _text(reference, "name", "params.ref")
                if prompt in own_prompts(view):
                    return _tool(COMPLETE, self._completing_prompt(view.tools[prompt], name, value, view))
                for source_name, source in sources.items():
                    known = source.latest.prompts.get(prompt)
                    if known is not None and known.withheld is None:
                        own = {**params, "ref": {"type": "ref/prompt", "name": known.name}}
                        return _completion_of(source_name, source, own)
                raise InvalidArgumentsError(f"There is no prompt {prompt[:100]!r}; prompts/list names them.")
            case "ref/resource":
                return self._template_completion(params, _text(reference, "uri", "params.ref"), value, view)
            case _:
                raise InvalidArgumentsError("params.ref.type: must be ref/prompt or ref/resource.")

    def _template_completion(self, params: Mapping[str, Any], template: str, value: str, view: ToolsetView) -> Tool:
        named = parse_qualified(template)
        is_own = any(template == entry["uriTemplate"] for entry in self._own.templates(view))
        for source_name, source in self.visible(view).items():
            own = template if named is None else named.uri if named.source == source_name else None
            if not is_own and own is not None and (own in source.latest.templates or own in source.latest.resources):
                return _completion_of(source_name, source, {**params, "ref": {"type": "ref/resource", "uri": own}})

        async def complete(context: ToolContext) -> dict[str, Any]:
            values = await self._own.complete(template, value, view, context.principal, context.files)
            return completion(values, value)

        if not is_own:
            raise InvalidArgumentsError(f"There is no resource template {template[:200]!r}.")
        return _tool(COMPLETE, complete)

    def _completing_prompt(self, tool: Tool, argument: str, value: str, view: ToolsetView) -> Any:
        async def complete(context: ToolContext) -> dict[str, Any]:
            if argument == "model":
                return completion(self._own.models(view), value)
            if argument == "relevant_files":
                *_, last = value.rsplit(",", 1)
                before = value[: len(value) - len(last)]
                return completion([before + path for path in await paths_like(last.strip(), context.files)], value)
            return completion(argument_choices(tool, argument), value)

        return complete


def completion(values: Iterable[str], beginning: str) -> dict[str, Any]:
    """Returns the values that begin with the text, as the result of ``completion/complete``."""
    matching = sorted({value for value in values if value.lower().startswith(beginning.strip().lower())})
    more = {"hasMore": True} if len(matching) > MAX_VALUES else {}
    return {"completion": {"values": matching[:MAX_VALUES], "total": len(matching), **more}}


def _completion_of(name: str, source: ContentSource, params: Mapping[str, Any]) -> Tool:
    async def complete(context: ToolContext) -> dict[str, Any]:
        if not source.latest.completes:
            return completion((), "")
        return await source.complete(
            {key: params[key] for key in ("ref", "argument", "context") if key in params}, context
        )

    return _tool(COMPLETE, complete, name, COMPLETION_TIMEOUT_S)


def _asking(source: ContentSource, prompt: str, arguments: Mapping[str, str]) -> Any:
    async def ask(context: ToolContext) -> dict[str, Any]:
        return await source.get_prompt(prompt, arguments, context)

    return ask


def _tool(method: str, run: Any, source: str = OWN_SOURCE, timeout_s: float | None = None) -> Tool:
    async def function(_: dict[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(f"The result of {method} is in the structured content.", await run(context))

    return Tool(method, "", _ANY_PARAMS, function, _READING, timeout_s=timeout_s, source=source)


def _named(part: Mapping[str, Any], own: str, requested: str) -> Mapping[str, Any]:
    """A part of a resource, with the URI that the caller requested."""
    return {**part, "uri": requested} if part.get("uri") == own else part


def _text(values: Mapping[str, Any], name: str, place: str = "params") -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArgumentsError(f"{place}.{name} must be a string that is not empty.")
    return value


def _start(cursor: object) -> int:
    if cursor is None:
        return 0
    word, _, start = cursor.partition("-") if isinstance(cursor, str) else ("", "", "")
    if word != "from" or not start.isascii() or not start.isdigit() or len(start) > 8:
        raise InvalidArgumentsError("The cursor is invalid; list from the start.")
    return int(start)
