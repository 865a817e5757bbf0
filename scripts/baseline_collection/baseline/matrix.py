"""The matrix: a TOML file that says with which arguments each tool is called, and which are not called, and why.

    [tools.chat]
    arguments = { prompt = "Name three primes." }

    [tools.version]                      # no arguments

    [tools.kimi_chat_with_files]
    arguments = { prompt = "What is this?", file_ids = ["{{notes.files[0].file_id}}"] }
    needs = ["notes"]

    [needs.notes]                        # called once before, and not measured; its result fills those templates
    tool = "kimi_upload_files"
    arguments = { files = ["notes.md"] }
    undo = { tool = "kimi_manage_files", arguments = { operation = "delete", file_id = "{{result.files[0].file_id}}" } }

    [tools.some_tool]
    skip = "why it is not called"        # or only_simulated = "why it is called with a simulator alone"

``undo`` of a tool is called after each turn, once for each of its calls that succeeded.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from .record import Skipped

SHIPPED: Final = Path(__file__).parents[1] / "matrix.toml"
"""Has every tool that ships with the daemon."""


class MatrixError(Exception):
    """The file is no matrix; the message says where and why."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that is made and not measured."""

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
    """Read and check a matrix.

    Raises:
        MatrixError: it cannot be read, is none, or refers to what it does not have.
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
                f"the matrix {path}: tools.{name} needs {unknown[0]!r}, and there is no [needs.{unknown[0]}]"
            )
    return matrix


def _in_which(document: dict[str, Any], error: msgspec.ValidationError) -> str:
    """The error with the name of the tool or need that it is in, which msgspec leaves out."""
    for table, form in (("tools", Case), ("needs", Step)):
        entries = document.get(table)
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            try:
                msgspec.convert(entry, form)
            except msgspec.ValidationError as own:
                return f"{own} in [{table}.{name}], which may have {', '.join(form.__struct_fields__)}"
    return f"{error}; it has the tables [tools.NAME] and [needs.NAME]"


def workspace_of(path: Path) -> Path:
    """Where relative paths in the matrix's arguments start: the directory ``workspace`` beside it, else its own.

    The shipped one has files that stay the same in every version, so that what is made of them compares.
    """
    beside = path.resolve().parent / "workspace"
    return beside if beside.is_dir() else beside.parent


def choose(
    matrix: Matrix, wished: tuple[str, ...] | None, listed: frozenset[str], *, simulated: bool
) -> tuple[tuple[str, ...], tuple[Skipped, ...]]:
    """Which tools are called, and which are not, each with its reason. ``wished`` None: all that are listed."""
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
        return "the daemon does not list it (another toolset, another version, or a misspelt name)"
    case = cases.get(name)
    if case is None:
        return "the matrix has no arguments for it"
    if case.skip is not None:
        return case.skip
    return None if simulated else case.only_simulated
