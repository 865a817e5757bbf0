"""The modules that need the MCP SDK, imported when the first source connects: importing it takes a second."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from ...version import install_extra
from ..source_content import SourceEvents
from .upstream_failures import UpstreamUnavailableError
from .upstream_questions import CallQuestions

if TYPE_CHECKING:
    from .content_requests import ContentRequests
    from .upstream_session import UpstreamSession


def session_opener() -> Callable[..., AbstractAsyncContextManager["UpstreamSession"]]:
    """Returns ``upstream_connection.open_session``.

    Raises:
        UpstreamUnavailableError: the MCP SDK is not installed.
    """
    try:
        from . import upstream_connection  # noqa: PLC0415 - takes a second; imported in a thread
    except ImportError as error:
        raise UpstreamUnavailableError(f"the MCP SDK is not installed ({error.name}); {install_extra('mcp')}") from None
    return upstream_connection.open_session


def new_content_requests(
    source: str, session: "UpstreamSession", events: SourceEvents, questions: CallQuestions | None = None
) -> "ContentRequests":
    """Returns the requests about resources and prompts of a session; with ``questions``, those of one call."""
    from .content_requests import ContentRequests  # noqa: PLC0415 - needs the SDK, which a session has imported

    return ContentRequests(source, session, events, questions)
