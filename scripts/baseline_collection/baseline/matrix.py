"""The matrix: a TOML file with the arguments for each tool, and the tools that are skipped, with reasons.

    [tools.chat]
    arguments = { prompt = "Name three primes." }

    [tools.version]                      # no arguments

    [tools.kimi_chat_with_files]
    arguments = { prompt = "What is this?", file_ids = ["{{notes.files[0].file_id}}"] }
    needs = ["notes"]

    [needs.notes]                        # called once before, unmeasured; its result fills the templates
    tool = "kimi_upload_files"
    arguments = { files = ["notes.md"] }
    undo = { tool = "kimi_manage_files", arguments = { operation = "delete", file_id = "{{result.files[0].file_id}}" } }

    [tools.some_tool]
    skip = "reason"                      # or only_simulated = "reason for calling it only with the simulator"

``undo`` of a tool is called after each turn, once for each of its calls that succeeded.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from .record import Skipped

SHIPPED: Final = Path(__file__).parents[1] / "matrix.toml"
"""Contains every tool that ships with toold."""


class MatrixError(Exception):
    """The file is not a valid matrix; the message says where and why."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that is made but not measured."""

    tool: str
    arguments: dict[str, Any] = {}
    undo: "Step | None" = None


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one tool is called."""

    arguments: dict[str, Any] = {}
    needs: tuple[str, ...] = ()
    undo: Step | None = None
    skip: str | None = None
    only_simulated: str | None = None


class Matrix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    tools: dict[str, Case]
    needs: dict[str, Step] = {}


def read_matrix(path: Path) -> Matrix:
    """Read and validate a matrix.

    Raises:
        MatrixError: it cannot be read, is invalid, or refers to a missing table.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise MatrixError(f"the matrix {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MatrixError(f"the matrix {path} has an error: {error}") from error
    try:
        matrix = msgspec.convert(document, Matrix)
    except msgspec.ValidationError as error:
        raise MatrixError(f"the matrix {path} has an error: {_in_which(document, error)}") from error
    for name, case in matrix.tools.items():
        if unknown := [need for need in case.needs if need not in matrix.needs]:
            raise MatrixError(
                f"the matrix {path}: tools.{name} needs {unknown[0]!r}, but [needs.{unknown[0]}] is missing"
            )
    return matrix


def _in_which(document: dict[str, Any], error: msgspec.ValidationError) -> str:
    """The error, with the tool or need that msgspec does not name."""
    for table, form in (("tools", Case), ("needs", Step)):
        entries = document.get(table)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            try:
                msgspec.convert(entry, form)
            except msgspec.ValidationError as own:
                return f"{own} in [{table}.{name}], which may have {', '.join(form.__struct_fields__)}"
    return f"{error}; the valid tables are [tools.NAME] and [needs.NAME]"


def workspace_of(path: Path) -> Path:
    """The base of relative paths in the matrix: the directory ``workspace`` next to it, otherwise its own directory.

    The files of the shipped workspace are the same in every version, so that results stay comparable.
    """
    workspace = path.resolve().parent / "workspace"
    return workspace if workspace.is_dir() else workspace.parent


def choose(
    matrix: Matrix, wished: tuple[str, ...] | None, listed: frozenset[str], *, simulated: bool
) -> tuple[tuple[str, ...], tuple[Skipped, ...]]:
    """Select the tools to call and the tools to skip, with reasons. ``wished`` None: all listed tools."""
    names = dict.fromkeys(wished) if wished is not None else dict.fromkeys(sorted(listed))
    called, skipped = [], []
    for name in names:
        reason = _reason_against(name, matrix.tools, listed, simulated=simulated)
        if reason is None:
            called.append(name)
        else:
            skipped.append(Skipped(tool_name=name, reason=reason))
    return tuple(called), tuple(skipped)


def _reason_against(name: str, cases: Mapping[str, Case], listed: frozenset[str], *, simulated: bool) -> str | None:
    if name not in listed:
        return "the daemon does not list it (other toolset, other version, or misspelled name)"
    case = cases.get(name)
    if case is None:
        return "the matrix has no arguments for it"
    if case.skip is not None:
        return case.skip
    return None if simulated else case.only_simulated
