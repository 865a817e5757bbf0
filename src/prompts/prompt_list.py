"""Lists the prompts in the answers of Phoenix, LiteLLM and registries, and in the files of a folder."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from .front_matter import PromptFormatError
from .prompt_files import DEFAULT_NAME, PLAIN_NAME, SUFFIXES
from .prompt_settings import PromptSourceName, ServerName

MAX_LISTED_PROMPTS: Final = 1000
"""The maximum number of prompts per source. Phoenix gets this number as its limit."""
_MAX_TEXT: Final = 500
"""The maximum length of a description. A longer name cannot be a ``prompt_ref``."""


class ListedPrompt(msgspec.Struct, frozen=True):
    """A prompt that a role can name."""

    prompt_ref: str
    source: PromptSourceName
    """The first source that has the prompt."""
    description: str | None = None


class SourceListing(NamedTuple):
    """The prompts of one source."""

    prompts: Sequence[ListedPrompt]
    problem: str | None = None
    """Why prompts are missing."""


class PromptListing(NamedTuple):
    """The prompts of all sources, with unique names. The first source in the settings' order wins."""

    prompts: Sequence[ListedPrompt]
    problems: Sequence[str]
    """A sentence for each source whose prompts are missing."""


class _ListForm(NamedTuple):
    path: str
    entries: str
    """The field of the list."""
    name: str
    """The field of an entry's name."""


LIST_FORMS: Final[Mapping[ServerName, _ListForm]] = {
    "phoenix": _ListForm(f"/v1/prompts?limit={MAX_LISTED_PROMPTS}", "data", "name"),
    "litellm": _ListForm("/prompts/list", "prompts", "prompt_id"),
    "registry": _ListForm("/prompts", "prompts", "id"),
}
"""How each server lists its prompts."""


def read_listing(server: ServerName, answer: object) -> SourceListing:
    """The prompts in the answer of a server.

    Raises:
        PromptFormatError: the answer is not a list of prompts.
    """
    form = LIST_FORMS[server]
    entries = answer.get(form.entries) if isinstance(answer, Mapping) else None
    if not isinstance(entries, list):
        raise PromptFormatError(f"its answer has no list {form.entries}")
    # A registry may have the name in one of two fields.
    named = (
        (_text(each.get(form.name)) or _text(each.get("name")), each) for each in entries if isinstance(each, dict)
    )
    more = isinstance(answer, Mapping) and bool(answer.get("next_cursor"))
    return bounded((ListedPrompt(name, server, _text(each.get("description"))) for name, each in named if name), more)


def bounded(prompts: Iterable[ListedPrompt], more: bool = False) -> SourceListing:
    """The first of these prompts, with unique names. ``more``: whether the source has further prompts."""
    listed = list({prompt.prompt_ref: prompt for prompt in prompts}.values())
    more = more or len(listed) > MAX_LISTED_PROMPTS
    return SourceListing(
        listed[:MAX_LISTED_PROMPTS], f"only the first {MAX_LISTED_PROMPTS} are listed" if more else None
    )


def prompts_in_folder(folder: Path) -> SourceListing:
    """The prompts in the files of a folder. Blocks."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except FileNotFoundError:
        return SourceListing(())
    except OSError as error:
        return SourceListing((), f"{folder} cannot be read ({error.strerror})")
    names = (path.stem for path in paths)
    return bounded(ListedPrompt(each, "file") for each in names if PLAIN_NAME.fullmatch(each) and each != DEFAULT_NAME)


def joined(listings: Mapping[PromptSourceName, SourceListing]) -> PromptListing:
    """The prompts of all sources, which must be in order."""
    prompts: dict[str, ListedPrompt] = {}
    for listing in listings.values():
        prompts = {prompt.prompt_ref: prompt for prompt in listing.prompts} | prompts
    problems = [f"{source}: {listing.problem}" for source, listing in listings.items() if listing.problem]
    return PromptListing(sorted(prompts.values(), key=lambda prompt: prompt.prompt_ref), problems)


def _text(value: object) -> str | None:
    return value[:_MAX_TEXT] if isinstance(value, str) and value else None


OwnListing = Callable[[], Sequence[Mapping[str, Any]] | None]
"""Returns the prompts of the served registry, in the form of its answers; None if no registry is served."""
