"""Environment variables of cs-agent-service about prompts, and the settings that they set. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ...prompts import PromptSettingsError, read_prompts


class _ServerVariables(NamedTuple):
    """The variables of one prompt server."""

    name: str
    """In ``[prompts]``."""
    urls: tuple[str, ...]
    """The first one that is set counts."""
    key: str | None = None
    tag: str | None = None


_SERVERS: Final = (
    _ServerVariables("phoenix", ("PHOENIX_URL", "PHOENIX_ENDPOINT"), "PHOENIX_API_KEY", "PHOENIX_PROMPT_TAG"),
    _ServerVariables("litellm", ("LITELLM_URL",), "LITELLM_API_KEY"),
    _ServerVariables("registry", ("REGISTRY_URL", "REGISTRY_API_URL"), "REGISTRY_TOKEN"),
)
_FILE: Final = "PROMPT_FILE"
PROMPT_VARIABLES: Final = (
    *(name for server in _SERVERS for name in (*server.urls, server.key, server.tag) if name is not None),
    _FILE,
)


def former_prompts(env: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The settings of ``[prompts]`` from the variables, and a note for each variable that is set."""
    present = {name: value for name in PROMPT_VARIABLES if (value := env.get(name, "").strip())}
    table: dict[str, Any] = {}
    notes: list[str] = []
    for server in _SERVERS:
        urls = [name for name in server.urls if name in present]
        further = [name for name in (server.key, server.tag) if name in present]
        if not urls:
            notes.extend(f"{name} is ignored: {server.urls[0]} is not set" for name in further)
            continue
        url, *others = urls
        notes.extend(f"{name} is ignored: {url} is set already" for name in others)
        # The operator named the host; within a container's network, most hosts have private addresses.
        settings: dict[str, Any] = {"url": present[url], "allow_private": True}
        if server.key in present:
            settings["key"] = {"env": server.key}
        if server.tag in present:
            settings["tag"] = present[server.tag]
        try:
            read_prompts({server.name: settings})
        except PromptSettingsError as error:
            notes.extend(f"{name} is ignored: {error}" for name in (url, *further))
            continue
        table[server.name] = settings
        place = f"prompts.{server.name}"
        notes.extend(f"{name} is read as {place}; write [{place}]" for name in (url, *further))
    if _FILE in present:
        table["default_file"] = present[_FILE]
        notes.append(f"{_FILE} is read as prompts.default_file; write default_file in [prompts]")
    return table, notes
