"""``read_stubs``: the tools as functions, for a model that writes a program."""

import asyncio
from typing import Final

from pydantic import Field

from ..protocol.errors import InvalidArgumentsError
from ..protocol.suggest import as_sentence, close_names, did_you_mean
from .context import ToolContext
from .tool import Arguments, tool

MAX_NAMES: Final = 50


class ReadStubsArguments(Arguments):
    """Which of them."""

    names: list[str] = Field(
        default=[], max_length=MAX_NAMES, description="Tools, or functions as module.function: their signatures."
    )
    module: str | None = Field(default=None, description="The signatures of a whole module.")


@tool("read_stubs", read_only=True, open_world=False, idempotent=True)
async def read_stubs(arguments: ReadStubsArguments, context: ToolContext) -> str:
    """Read how a program calls the tools: typed signatures by `names` or `module`; without either, an index of all
    functions with a line each.
    """
    stubs = context.selection.stubs
    if not (arguments.names or arguments.module):
        return stubs.index() or "This session has no tools that a program could call."
    names = list(arguments.names)
    if arguments.module is not None:
        if arguments.module not in stubs.modules:
            known = list(stubs.modules)
            hint = did_you_mean(close_names(arguments.module, known)) or f"there are {', '.join(known) or 'none'}"
            raise InvalidArgumentsError(as_sentence(f"module: there is none {arguments.module[:100]!r}; {hint}"))
        names += [f"{arguments.module}.{function}" for function in stubs.modules[arguments.module]]
    # In a thread: a millisecond a tool, when it is first asked for.
    return await asyncio.to_thread(stubs.signatures, names)
