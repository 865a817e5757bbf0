"""Finds the source that a URI belongs to, and the URIs that callers see. Pure (decision 117).

A source's URIs pass unchanged, so that links to them, such as a tool's ``_meta.ui.resourceUri``, stay valid. If two
sources list the same URI, the URI of the source that is configured later gets the prefix ``toold://source/NAME/``. This
qualified
form is accepted for every resource of a source.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import re2  # type: ignore[import-untyped]  # neither re2 nor typeshed has types

from ..sources import ContentSource, Entry
from ..tools import ToolsetView

OWN_PREFIX: Final = "toold://"
SOURCE_PREFIX: Final = f"{OWN_PREFIX}source/"

_VARIABLE: Final = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_MAX_VARIABLES: Final = 20
"""A template with more variables matches nothing, because the time for a match grows with them."""
MAX_TEMPLATE_CHARS: Final = 1000
"""A longer template matches nothing, because compiling it takes milliseconds."""
MAX_PATTERNS: Final = 4096
"""The number of compiled templates to keep: enough for two sources with ``content_listing.MAX_ENTRIES`` templates
each."""
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 256 * 1024  # bytes


class OwnedResource(NamedTuple):
    """A resource of a source."""

    source: str
    uri: str
    """The URI that the source uses."""


def visible_sources(sources: Mapping[str, ContentSource], view: ToolsetView) -> dict[str, ContentSource]:
    """Returns the sources whose resources and prompts belong to a toolset."""
    return {name: source for name, source in sources.items() if view.has_source(name)}


def qualified(source: str, uri: str) -> str:
    """Returns the form of a source's URI that is unique among all sources."""
    return f"{SOURCE_PREFIX}{source}/{uri}"


def parse_qualified(uri: str) -> OwnedResource | None:
    """Returns the source and the URI in a qualified URI; None for any other URI."""
    source, slash, own = uri.removeprefix(SOURCE_PREFIX).partition("/")
    return OwnedResource(source, own) if uri.startswith(SOURCE_PREFIX) and slash and own else None


def shown_entries(sources: Mapping[str, ContentSource], key: str) -> Iterator[Entry]:
    """Yields the resources (``key`` is ``uri``) or templates (``uriTemplate``) of the sources as callers see them."""
    taken: set[str] = set()
    for name, source in sources.items():
        listed = source.latest.resources if key == "uri" else source.latest.templates
        for uri, entry in listed.items():
            yield {**entry, key: qualified(name, uri)} if uri in taken or uri.startswith(OWN_PREFIX) else entry
        taken.update(listed)


def owner_of(sources: Mapping[str, ContentSource], tools: Iterable[Any], uri: str) -> OwnedResource | None:
    """Returns the source that a URI belongs to; None if there is none, or more than one candidate. URIs of the daemon's
    own scheme belong to no source, even if one lists them.

    The first match counts: the source that a qualified URI names; the first source that lists the URI; the first source
    with a tool whose metadata names it; the first source with a matching template; the only source that lists resources
    with the same scheme and authority; the only source with resources. A URI is never tried at several sources.
    """
    named = parse_qualified(uri)
    if named is not None:
        return named if named.source in sources else None
    if uri.startswith(OWN_PREFIX):
        return None
    readers = {name: source for name, source in sources.items() if source.latest.reads}
    for name, source in readers.items():
        if uri in source.latest.resources:
            return OwnedResource(name, uri)
    for tool in tools:
        if tool.source in readers and _app_resource(tool) == uri:
            return OwnedResource(tool.source, uri)
    for name, source in readers.items():
        if any(matches(template, uri) for template in source.latest.templates):
            return OwnedResource(name, uri)
    place = _place(uri)
    near = [
        name
        for name, source in readers.items()
        if any(_place(listed) == place for listed in (*source.latest.resources, *source.latest.templates))
    ]
    candidates = near or list(readers)
    return OwnedResource(candidates[0], uri) if len(candidates) == 1 else None


def shown_uri(sources: Mapping[str, ContentSource], tools: Iterable[Any], owned: OwnedResource) -> str:
    """Returns the plain URI of a source's resource if it leads to this source, otherwise the qualified URI."""
    return owned.uri if owner_of(sources, tools, owned.uri) == owned else qualified(*owned)


def matches(template: str, uri: str) -> bool:
    """Whether a URI may be an expansion of a URI template (RFC 6570): its fixed parts are equal.

    Uses RE2, which takes linear time: templates come from servers, and some would take Python's engine years.
    """
    if not uri.startswith(template.partition("{")[0]) or not uri.endswith(template.rpartition("}")[2]):
        return False
    pattern = _pattern(template)
    return pattern is not None and pattern.fullmatch(uri.encode(errors="replace")) is not None


@lru_cache(maxsize=MAX_PATTERNS)
def _pattern(template: str) -> Any:
    """A compiled pattern for the expansions of a template; None if the template is not supported."""
    pieces, at = [], 0
    variables = list(_VARIABLE.finditer(template))
    if not variables or len(variables) > _MAX_VARIABLES or len(template) > MAX_TEMPLATE_CHARS:
        return None
    for variable in variables:
        pieces.append(re2.escape(template[at : variable.start()]))
        pieces.append(".*" if variable[1] in {"+", "#", "/", "?", "&", ";", "."} else "[^/?#]*")
        at = variable.end()
    try:
        return re2.compile("".join(pieces) + re2.escape(template[at:]), _OPTIONS)
    except (re2.error, UnicodeEncodeError):
        return None


def _app_resource(tool: Any) -> object:
    """The resource that shows a tool's result (MCP Apps), from the metadata of the tool's listing."""
    meta = getattr(tool.info, "meta", None)
    shown = meta.get("ui") if isinstance(meta, Mapping) else None
    return shown.get("resourceUri") if isinstance(shown, Mapping) else None


def _place(uri: str) -> str:
    """The scheme and authority of a URI."""
    scheme, _, rest = uri.partition(":")
    return f"{scheme.lower()}://{rest[2:].partition('/')[0]}" if rest.startswith("//") else scheme.lower()
