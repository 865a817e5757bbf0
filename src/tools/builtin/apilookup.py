"""``apilookup``: the current documentation of an API, found by a model that searches the web."""

import datetime as dt
from typing import Final

from pydantic import Field

from ..completions import ModelQuestion, ask_within
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext
from .chat import TIMEOUT_S

_SYSTEM: Final = """\
Look up the current facts about an API, an SDK, a library or a platform. Today is {today}. Your training knowledge \
is older and may be wrong, so search the web before you answer, with the year in the query where versions matter.

1. If the question is about a platform with versions (an operating system, a browser, a language), first find its \
current version, then search for that version.
2. Prefer the project's documentation, its release notes and changelog, its repository and the package registry to \
articles about it. Two to four searches suffice; stop when an authoritative page answers the question.
3. Answer briefly: the current version with its date, the signature or the configuration with a short example, and \
breaking changes, deprecations and security advisories that matter for the question.
4. End with the links that you used. Say what you could not confirm; never fill it in from memory."""


class LookupArguments(Arguments):
    """A question about an API."""

    prompt: str = Field(min_length=1, description="The API, SDK or library, and what you need to know about it.")
    model: str | None = Field(
        default=None, description="A model that can search the web: id or alias (see listmodels), or auto."
    )
    continuation_id: str | None = Field(default=None, description="Conversation to continue.")


@tool("apilookup", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def apilookup(arguments: LookupArguments, context: ToolContext) -> ToolOutput:
    """Look up current API or SDK documentation on the web: versions, signatures, breaking changes, deprecations.

    A model searches the web and answers with links. Use it when your own knowledge may be out of date.
    """
    question = ModelQuestion(
        arguments.prompt,
        system=_SYSTEM.format(today=dt.datetime.now(dt.UTC).date().isoformat()),
        model=arguments.model,
        web_search=True,
    )
    async with context.conversation(arguments.continuation_id) as conversation:
        result = await ask_within(conversation, question, context, tool="apilookup")
    return ToolOutput(result.text, {**result.with_text(), "continuation_id": conversation.id})
