"""``read_stubs``: the tools as Python functions, for a model that writes a program."""

import asyncio
from collections.abc import Sequence
from typing import Final

from pydantic import Field

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.name_suggestions import as_sentence, close_names, did_you_mean
from ..orchestration_context import LookupContext
from ..stubs import StubSet
from ..tool import Arguments, tool

MAX_NAMES: Final = 50
MAX_BYTES: Final = 32 * 1024
"""The maximum size of an answer: some 8,000 tokens, or an index of 400 tools. Only a single signature may be larger."""


class ReadStubsArguments(Arguments):
    """The stubs to return."""

    names: list[str] = Field(
        default=[],
        max_length=MAX_NAMES,
        description="Tools, or functions as module.function, to get signatures of.",
    )
    module: str | None = Field(
        default=None, description=f"Module to get signatures of, or the index if it has over {MAX_NAMES} functions."
    )
    offset: int = Field(default=0, ge=0, description="Functions of the module to skip; without module, modules.")


@tool("read_stubs", read_only=True, open_world=False, idempotent=True)
async def read_stubs(arguments: ReadStubsArguments, context: LookupContext) -> str:
    """Get the Python functions with which a program calls the tools: typed signatures for `names` or a `module`, or,
    without arguments, an index with one line per function. Long answers say how to continue.
    """
    stubs = context.toolset_view.stubs
    if not (arguments.names or arguments.module):
        return _index(stubs, arguments.offset) or "This session has no tools that a program can call."
    if arguments.module is not None and arguments.module not in stubs.modules:
        known = list(stubs.modules)
        hint = did_you_mean(close_names(arguments.module, known)) or f"known: {', '.join(known) or 'none'}"
        raise InvalidArgumentsError(as_sentence(f"module: unknown module {arguments.module[:100]!r}; {hint}"))
    # Runs in a thread, because the first request costs about 1 ms per tool.
    return await asyncio.to_thread(_requested, stubs, arguments.names, arguments.module, arguments.offset)


def _requested(stubs: StubSet, names: Sequence[str], module: str | None, offset: int) -> str:
    """The signatures of ``names``, and the page of a module from ``offset`` on."""
    parts: list[str] = []
    if names and (module is None or not _is_whole(stubs, names, module)):
        text, rest = stubs.signatures_within(names, MAX_BYTES)
        parts.append(text)
        if rest:
            parts.append(f"Omitted because the answer would be too long: {', '.join(rest)}. Request them separately.")
    if module is not None:
        room = MAX_BYTES - sum(len(part.encode()) for part in parts)
        parts.append(_module_page(stubs, module, offset, room))
    return "\n\n".join(parts)


def _is_whole(stubs: StubSet, names: Sequence[str], module: str) -> bool:
    """Whether the module's signatures contain those of all ``names``."""
    few = len(stubs.modules[module]) <= MAX_NAMES
    return few and all(stubs.python_name(name)[0] == module for name in names)


def _module_page(stubs: StubSet, module: str, offset: int, max_bytes: int) -> str:
    functions = stubs.modules[module]
    _check_offset(offset, len(functions), f"functions of {module}")
    if len(functions) > MAX_NAMES:
        lines = _fitting(stubs.index_lines(module)[offset:], max_bytes)
        text, end = "\n".join([f"{module}:", *lines]), offset + len(lines)
        hint = "use `names` to get signatures"
    else:
        text, rest = stubs.signatures_within([f"{module}.{function}" for function in functions[offset:]], max_bytes)
        end = len(functions) - len(rest)
        if not offset and not rest:
            return text
        hint = ""
    shown = f"{len(functions)} functions" if end - offset == len(functions) else _place(offset, end, len(functions))
    further = f'continue with module="{module}", offset={end}' if end < len(functions) else ""
    return f"{text}\n{'; '.join(filter(None, [shown, further, hint]))}."


def _index(stubs: StubSet, offset: int) -> str:
    """The index of all functions or, if it is too long, the number of functions per module, largest first."""
    index = stubs.index()
    if len(index.encode()) <= MAX_BYTES and not offset:
        return index
    _check_offset(offset, len(stubs.modules), "modules")
    counts = [f"{name}: {count} functions" for name, count in stubs.sizes]
    lines = _fitting(counts[offset:], MAX_BYTES)
    end = offset + len(lines)
    further = f" Continue with offset={end}." if end < len(counts) else ""
    use = "Use `module` to get one module's index or signatures, or search_tools to find tools."
    return "\n".join([*lines, use + further])


def _fitting(lines: Sequence[str], max_bytes: int) -> list[str]:
    """The first lines, with at most ``max_bytes`` in total, but at least one line."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line.encode()) + 1
        if number and size > max_bytes:
            return list(lines[:number])
    return list(lines)


def _place(offset: int, end: int, total: int) -> str:
    return f"Functions {offset + 1} to {end} of {total}"


def _check_offset(offset: int, total: int, what: str) -> None:
    if offset and offset >= total:
        raise InvalidArgumentsError(f"offset: there are only {total} {what}; it must be less.")
