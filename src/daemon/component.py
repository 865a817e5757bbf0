"""A component: a part of the daemon that starts, runs in the background, applies settings and closes."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from .config.settings import Settings


async def _do_nothing() -> None:
    pass


def _ignore(_: Settings) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Component:
    """The functions of one component; each does nothing by default. ``component_list.py`` has the order."""

    name: str
    start: Callable[[], Awaitable[None]] = _do_nothing
    """Starts the component. Components start in order; if one fails, the earlier ones are closed."""
    run: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Runs as a background task once all components have started, and is cancelled after the drain."""
    apply: Callable[[Settings], None] = _ignore
    """Applies reloaded settings, which are valid: it must not fail."""
    close: Callable[[], Awaitable[None]] = _do_nothing
    """Closes the component. Components close in reverse order, after the drain."""
