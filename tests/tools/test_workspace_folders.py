"""Folders as attachments: which of their files are taken, and what is said about the others."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import PermissionDeniedError
from toold.protocol.tool_call import TextContent
from toold.tools import FileAccess, ToolOutput, bind, workspace_folders
from toold.tools.builtin.chat import chat

if TYPE_CHECKING:
    from tests.tools.tool_context import Context


def write(directory: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


async def test_text_files_are_taken_and_the_others_named(workspace: Path) -> None:
    """Links, binary files, secrets, generated and ignored files are left out, each with its reason; git's rules apply
    from the workspace down, and a deeper ``.gitignore`` decides first.
    """
    write(
        workspace,
        {
            ".gitignore": "*.log\n/out/\n", "src/.gitignore": "!keep.log\ndata/*\n!data/a.csv\n", "src/b.py": "b",
            "src/a/c.py": "c", "src/x.log": "x", "src/keep.log": "k", "src/out/d.py": "d", "src/data/a.csv": "1",
            "src/data/b.csv": "2", "src/logo.png": b"\0\1", "src/.env": "KEY=1", "src/node_modules/m.js": "m",
        },
    )  # fmt: skip
    (workspace / "src/link.py").symlink_to(workspace / "src/b.py")
    folder = await FileAccess((workspace,)).folder_files("src")
    assert folder is not None
    assert folder.names == (".gitignore", "a/c.py", "b.py", "data/a.csv", "keep.log", "out/d.py")
    assert folder.paths[2] == str(workspace / "src/b.py")
    reasons = dict(folder.left_out)
    assert set(reasons) == {".env", "data/b.csv", "link.py", "logo.png", "node_modules", "x.log"}
    assert reasons["x.log"] == reasons["data/b.csv"] == "ignored by .gitignore"
    assert reasons["link.py"] == "a link"
    assert "binary" in reasons["logo.png"]
    assert "secret" in reasons[".env"]


async def test_a_file_is_not_a_folder_and_a_foreign_folder_is_refused(workspace: Path, tmp_path: Path) -> None:
    """The folder must be below the workspace; the state directory is not listed even there."""
    write(workspace, {"a.txt": "a", "state/token": "t"})
    access = FileAccess((workspace,), denied=(workspace / "state",))
    assert await access.folder_files("a.txt") is None
    folder = await access.folder_files(".")
    assert folder is not None
    assert (folder.names, folder.left_out) == (("a.txt",), ())
    for path in (str(tmp_path), "state"):
        with pytest.raises(PermissionDeniedError):
            await access.folder_files(path)


async def test_limits_of_a_folder(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the numbers of files, bytes and entries, files are left out; the names of those are limited too."""
    write(workspace, {f"{number}.txt": "x" * 10 for number in range(6)})
    access = FileAccess((workspace,))

    async def taken(**limits: int) -> tuple[int, int, int]:
        with monkeypatch.context() as patch:
            for name, value in limits.items():
                patch.setattr(workspace_folders, name, value)
            folder = await access.folder_files(".")
        assert folder is not None
        return len(folder.names), len(folder.left_out), folder.left_out_count

    assert await taken() == (6, 0, 0)
    assert await taken(MAX_FOLDER_FILES=2) == (2, 4, 4)
    assert await taken(MAX_FOLDER_BYTES=35) == (3, 3, 3)
    assert await taken(MAX_ENTRIES=4) == (4, 1, 1)
    assert await taken(MAX_FOLDER_FILES=0, MAX_LEFT_OUT=1) == (0, 1, 6)
    (workspace / ".gitignore").write_text("*.txt\n")
    assert await taken() == (1, 6, 6)
    assert await taken(MAX_IGNORE_BYTES=3) == (7, 0, 0)


async def test_the_answer_lists_the_files_of_a_folder(context: "Context", workspace: Path) -> None:
    """``chat`` sends the folder's files, and lists them in ``folders`` and in a text after the answer."""
    write(workspace, {"src/a.py": "alpha", "src/b.bin": b"\0"})
    answer = await chat.function(bind(chat, {"prompt": "?", "files": ["src", "src/a.py"]}), context)
    assert isinstance(answer, ToolOutput)
    assert [file.name for file in context.requests[-1].files] == ["src/a.py"]
    assert isinstance(answer.data, dict)
    (folder,) = answer.data["folders"]
    assert (folder["folder"], folder["files"], folder["left_out_count"]) == ("src", ["a.py"], 1)
    (block,) = answer.blocks
    assert isinstance(block, TextContent)
    assert "src: 1 file read (a.py). Left out: b.bin: is a binary file" in block.text
