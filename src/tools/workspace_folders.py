"""The text files of a folder, for callers that name a folder in place of its files."""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec

from ..protocol.error_codes import CallError

MAX_FOLDER_FILES: Final = 200
"""The maximum number of files from one folder: more than the window of most models holds."""
MAX_FOLDER_BYTES: Final = 4 * 1024 * 1024
"""The maximum bytes of files from one folder: some million tokens, the largest window in the catalog."""
MAX_ENTRIES: Final = 20_000
"""The maximum number of files and folders that are examined; listing them takes some tenths of a second."""
MAX_IGNORE_BYTES: Final = 64 * 1024
"""A longer ``.gitignore`` is not read: compiling it would take too long."""
MAX_LEFT_OUT: Final = 50
"""The maximum number of omitted files that an answer names; the others are counted."""

GENERATED: Final = frozenset(
    {
        ".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache",
        ".pytest_cache", ".ruff_cache", ".idea", ".gradle",
    }
)  # fmt: skip
"""Folders of version control, packages and caches, which are left out even without a ``.gitignore``."""


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """The text files of a folder."""

    folder: str
    """The folder, as named by the caller."""
    paths: tuple[str, ...]
    """Absolute paths, sorted."""
    names: tuple[str, ...]
    """The paths relative to the folder."""
    left_out: tuple[tuple[str, str], ...]
    """The first ``MAX_LEFT_OUT`` omitted files, with reasons."""
    left_out_count: int

    def as_data(self) -> dict[str, object]:
        left_out = [{"what": name, "reason": reason} for name, reason in self.left_out]
        data = {"folder": self.folder, "files": list(self.names), "left_out": left_out}
        return data | {"left_out_count": self.left_out_count}

    @property
    def sentence(self) -> str:
        """One sentence for people."""
        number = len(self.names)
        taken = f"{self.folder}: {number or 'no'} file{'s' if number > 1 else ''} read"
        if self.names:
            taken += f" ({', '.join(self.names)})"
        if not self.left_out_count:
            return f"{taken}."
        shown = "; ".join(f"{name}: {reason}" for name, reason in self.left_out)
        others = self.left_out_count - len(self.left_out)
        return f"{taken}. Left out: {shown}{f'; and {others:,} more' if others else ''}."


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of one ``.gitignore``."""

    directory: Path
    spec: GitIgnoreSpec

    def decision(self, path: Path, *, is_directory: bool) -> bool | None:
        """Whether the path is ignored; None if no rule is about it."""
        name = path.relative_to(self.directory).as_posix()
        return self.spec.check_file(f"{name}/" if is_directory else name).include


def text_files_of(
    folder: str,
    root: Path,
    target: Path,
    denied: Collection[tuple[int, int]],
    read: Callable[[str], int],
) -> FolderFiles:
    """Returns the text files below the folder ``target``, whose workspace directory is ``root``. Accesses the disk.

    Omits files that git ignores by the ``.gitignore`` files from ``root`` down, ``GENERATED`` folders, links, and the
    files that ``denied`` identifies by device and inode. ``read`` reads a file and returns its bytes; files that it
    refuses are omitted, with its message.
    """
    taken: list[str] = []
    left_out: list[tuple[str, str]] = []
    size = 0

    def problem_of(path: Path) -> str:
        """The reason for omitting the file; empty if it was read."""
        nonlocal size
        if len(taken) == MAX_FOLDER_FILES:
            return f"{MAX_FOLDER_FILES} files are read from one folder"
        try:
            length = read(str(path))
        except CallError as error:
            return error.message.partition("; ")[0].rstrip(".").removeprefix(repr(str(path))).strip()
        if size + length > MAX_FOLDER_BYTES:
            return f"{MAX_FOLDER_BYTES:,} bytes are read from one folder"
        taken.append(str(path))
        size += length
        return ""

    for number, (path, reason) in enumerate(folder_entries(root, target, denied)):
        if number == MAX_ENTRIES:
            left_out.append(("further files", f"only {MAX_ENTRIES:,} files and folders are looked at"))
            break
        if problem := reason or problem_of(path):
            left_out.append((path.relative_to(target).as_posix(), problem))
    names = tuple(Path(path).relative_to(target).as_posix() for path in taken)
    return FolderFiles(folder, tuple(taken), names, tuple(left_out[:MAX_LEFT_OUT]), len(left_out))


def folder_entries(root: Path, target: Path, denied: Collection[tuple[int, int]]) -> Iterator[tuple[Path, str]]:
    """Yields each file, with the reason for omitting it or an empty text, and each omitted folder."""
    above = [target, *target.parents]
    rules = [rule for folder in reversed(above[: above.index(root) + 1]) if (rule := _rules_of(folder))]
    yield from _walk(target, rules, denied)


def _walk(folder: Path, rules: list[_Rules], denied: Collection[tuple[int, int]]) -> Iterator[tuple[Path, str]]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        yield folder, f"cannot be listed: {os.strerror(error.errno or 0)}"
        return
    for entry in entries:
        path = folder / entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.is_symlink():
            yield path, "a link"
        elif is_directory and entry.name in GENERATED:
            yield path, "a folder of version control, packages or caches"
        elif _ignored(path, rules, is_directory=is_directory):
            yield path, "ignored by .gitignore"
        elif not is_directory:
            yield path, "" if entry.is_file(follow_symlinks=False) else "no regular file"
        else:
            status = entry.stat(follow_symlinks=False)
            if (status.st_dev, status.st_ino) not in denied:
                own = _rules_of(path)
                yield from _walk(path, [*rules, own] if own else rules, denied)


def _rules_of(folder: Path) -> _Rules | None:
    try:
        with (folder / ".gitignore").open("rb") as file:
            text = file.read(MAX_IGNORE_BYTES + 1)
        if len(text) > MAX_IGNORE_BYTES:
            return None
        # RE2 takes time linear in the path for any pattern: a cloned repository may have a hostile one.
        return _Rules(folder, GitIgnoreSpec.from_lines(text.decode("utf-8", "replace").splitlines(), backend="re2"))
    except (OSError, ValueError):  # no such file, or an invalid pattern
        return None


def _ignored(path: Path, rules: list[_Rules], *, is_directory: bool) -> bool:
    """Whether git ignores the path: the last rule decides, and rules of a deeper ``.gitignore`` take precedence."""
    decisions = (rule.decision(path, is_directory=is_directory) for rule in reversed(rules))
    return next((decision for decision in decisions if decision is not None), False)
