"""The interface by which a hosted agent gets the prompt of a role. ``prompts`` implements it; agents know only this
protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

TemplateFormat = Literal["mustache", "f-string", "none"]
"""``{{name}}``, ``{name}``, or text without variables."""


class PromptError(Exception):
    """No source has the prompt, or its template cannot be filled in. The message is for the operator: it lists the
    requested sources, and why each did not return the prompt. It contains no key. ``shown`` is for callers
    without the operator right: it contains no paths and addresses either.
    """

    def __init__(self, message: str, shown: str | None = None) -> None:
        self.shown = message if shown is None else shown
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class PromptQuery:
    """A request for the prompt of one role."""

    role: str
    inline: str | None = None
    """The text itself, if the configuration contains it."""
    ref: str | None = None
    """The name of the prompt at the servers. Without it, only ``inline`` and files are considered."""
    tag: str | None = None
    """The tag of the version; by default, the tag in the settings."""
    variables: Mapping[str, object] = field(default_factory=dict)
    """The values of the template's variables: the role's ``metadata`` and the call's ``variables``. A string is
    inserted as it is, any other value as JSON."""


@dataclass(frozen=True, slots=True)
class ResolvedPrompt:
    """A prompt, ready to be sent to a model."""

    text: str
    source: str
    """Its source: ``inline``, ``phoenix``, ``litellm``, ``registry`` or ``file``."""
    version: str
    """Names this version of the template: the server's id of the version, or the first 12 digits of its SHA-256."""
    model: str | None = None
    """The model that the prompt names."""
    warnings: tuple[str, ...] = ()
    """A sentence for each source that failed before this one, and for the use of the last known good prompt."""


class PromptSource(Protocol):
    """Resolves prompts."""

    async def resolve(self, role: PromptQuery) -> ResolvedPrompt:
        """Return the role's prompt from the first source that has it.

        Raises:
            PromptError: no source has it, or its template has a variable that ``variables`` lacks.
        """
        ...
