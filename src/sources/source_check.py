"""Checking a source with pins once, for `toold sources check`."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..tools import SecretLocation, Tool
from .source import SourceCheck, SourceListener, SourceNote
from .source_secrets import COMMAND_ENVIRONMENT, unavailable_secrets


class CheckedSource(Protocol):
    """A source that can be checked without running."""

    async def check(self, listener: SourceListener) -> str:
        """Connects once and publishes the tools; returns the title that the source gives itself."""
        ...

    async def close(self) -> None: ...


async def check_once(
    source: CheckedSource, secrets: Iterable[SecretLocation], subject: str, failures: tuple[type[Exception], ...]
) -> SourceCheck:
    """Checks a source, and closes it.

    Args:
        source: the source, which is not running.
        secrets: its secrets. If this process cannot read one of them, it does not connect to the source.
        subject: the kind of the source in the advice: ``agent`` or ``server``.
        failures: the exceptions of ``check`` that mean that the source cannot be used; their messages say why.
    """
    try:
        missing = unavailable_secrets(secrets, environment=COMMAND_ENVIRONMENT)
        if missing:
            return SourceCheck(problem=f"{'; '.join(missing)}; set it here to check the {subject}")
        published = _CheckListener()
        title = await source.check(published)
    except failures as error:
        return SourceCheck(problem=str(error))
    finally:
        await source.close()
    tools = tuple(tool.name for tool in published.tools if tool.withheld is None)
    return SourceCheck(title, tools, tuple(published.notes))


class _CheckListener:
    """Stores what a source publishes. Implements ``SourceListener``."""

    def __init__(self) -> None:
        self.tools: Sequence[Tool] = ()
        self.notes: Sequence[SourceNote] = ()

    def publish(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        self.tools, self.notes = tools, notes

    def restore(self, tools: Sequence[Tool]) -> None:
        """Ignored: the tools are published next."""

    def report_problem(self, problem: str) -> None:
        """Ignored: the problem is also raised."""
