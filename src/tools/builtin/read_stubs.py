"""``read_stubs``: the tools as Python functions, for a model that writes a program."""

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
"""Some 8,000 tokens; an index of 400 tools is about this large."""


class ReadStubsArguments(Arguments):
    """Which stubs to return."""

    names: list[str] = Field(
        default=[],
        max_length=MAX_NAMES,
        description="Tools, or functions as module.function, to get signatures of.",
    )
    module: str | None = Field(
        default=None, description=f"Module to get signatures of, or the index if it has over {MAX_NAMES} functions."
    )


@tool("read_stubs", read_only=True, open_world=False, idempotent=True)
async def read_stubs(arguments: ReadStubsArguments, context: LookupContext) -> str:
    """Get the Python functions by which a program calls the tools: typed signatures for `names` or a `module`, or
    without arguments an index with one line per function.
    """
    stubs = context.toolset_view.stubs
    if not (arguments.names or arguments.module):
        return _index(stubs) or "This session has no tools that a program can call."
    names, parts = list(arguments.names), list[str]()
    if arguments.module is not None:
        if arguments.module not in stubs.modules:
            known = list(stubs.modules)
            hint = did_you_mean(close_names(arguments.module, known)) or f"known: {', '.join(known) or 'none'}"
            raise InvalidArgumentsError(as_sentence(f"module: unknown module {arguments.module[:100]!r}; {hint}"))
        functions = stubs.modules[arguments.module]
        if len(functions) > MAX_NAMES:
            index = stubs.index([arguments.module])
            parts.append(f"{index}\n{len(functions)} functions; use `names` to get signatures.")
        else:
            names += [f"{arguments.module}.{function}" for function in functions]
    if names:  # in a thread: the first request costs about 1 ms per tool
        parts.append(await asyncio.to_thread(stubs.signatures, names))
    return "\n\n".join(parts)


def _index(stubs: StubSet) -> str:
    """Returns the index of all functions, or the number of functions per module if the index is too long."""
    index = stubs.index()
    if len(index.encode()) <= MAX_INDEX_BYTES:
        return index
    counts = (f"{name}: {len(functions)} functions" for name, functions in stubs.modules.items())
    return "\n".join([*counts, "Use `module` to get one module's index or signatures, or search_tools to find tools."])
