"""``read_stubs``: the tools as functions, for a model that writes a program."""

import asyncio
from typing import Final

from pydantic import Field

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.name_suggestions import as_sentence, close_names, did_you_mean
from ..orchestration_context import LookupContext
from ..stubs import StubSet
from ..tool import Arguments, tool

MAX_NAMES: Final = 50
MAX_INDEX_BYTES: Final = 32 * 1024
"""Some 8,000 tokens; it takes 400 tools to come to more."""


class ReadStubsArguments(Arguments):
    """Which of them."""

    names: list[str] = Field(
        default=[], max_length=MAX_NAMES, description="Tools, or functions as module.function: their signatures."
    )
    module: str | None = Field(
        default=None, description=f"The signatures of a whole module; of one with over {MAX_NAMES} its index."
    )


@tool("read_stubs", read_only=True, open_world=False, idempotent=True)
async def read_stubs(arguments: ReadStubsArguments, context: LookupContext) -> str:
    """Read how a program calls the tools: typed signatures by `names` or `module`; without either, an index of all
    functions with a line each.
    """
    stubs = context.toolset_view.stubs
    if not (arguments.names or arguments.module):
        return _index(stubs) or "This session has no tools that a program could call."
    names, told = list(arguments.names), list[str]()
    if arguments.module is not None:
        if arguments.module not in stubs.modules:
            known = list(stubs.modules)
            hint = did_you_mean(close_names(arguments.module, known)) or f"there are {', '.join(known) or 'none'}"
            raise InvalidArgumentsError(as_sentence(f"module: there is none {arguments.module[:100]!r}; {hint}"))
        functions = stubs.modules[arguments.module]
        if len(functions) > MAX_NAMES:
            told.append(f"{stubs.index([arguments.module])}\n{len(functions)} functions; `names` has their signatures.")
        else:
            names += [f"{arguments.module}.{function}" for function in functions]
    if names:  # in a thread: a millisecond a tool, when it is first asked for
        told.append(await asyncio.to_thread(stubs.signatures, names))
    return "\n\n".join(told)


def _index(stubs: StubSet) -> str:
    """All functions; where that is long, how many each module has."""
    whole = stubs.index()
    if len(whole.encode()) <= MAX_INDEX_BYTES:
        return whole
    counted = (f"{name}: {len(functions)} functions" for name, functions in stubs.modules.items())
    return "\n".join([*counted, "`module` has the index or the signatures of one; search_tools finds tools by words."])
