"""Files of a conversation's earlier turns: read again if they fit, or named with the reason."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.tools import FileAccess, ToolOutput, Turn, bind
from toold.tools.builtin.chat import chat
from toold.tools.completions import earlier_files as module
from toold.tools.completions.completion_run import waiting_time
from toold.tools.completions.earlier_files import earlier_files

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

Write = Callable[[str, str | bytes], Path]


async def test_a_conversation_that_goes_on_sends_its_files_again(context: "Context", write: Write) -> None:
    """The second turn has the file of the first in its current version, without naming it; a deleted file is listed."""
    write("a.txt", "alpha")
    write("b.txt", "beta")
    first = await chat.function(bind(chat, {"prompt": "?", "files": ["a.txt", "b.txt"]}), context)
    assert isinstance(first, ToolOutput)
    assert isinstance(first.data, dict)
    write("a.txt", "omega").with_name("b.txt").unlink()
    more = {"prompt": "And?", "continuation_id": first.data["continuation_id"]}
    second = await chat.function(bind(chat, more), context)
    assert [(file.name, file.text) for file in context.requests[-1].files] == [("a.txt", "omega")]
    assert isinstance(second, ToolOutput)
    assert isinstance(second.data, dict)
    (omitted,) = second.data["omitted"]
    assert omitted["what"] == "b.txt"
    assert omitted["reason"].startswith("the file of an earlier turn was not read again: it is not in the workspace")


async def test_earlier_files_that_do_not_fit_are_omitted(context: "Context", write: Write) -> None:
    """They neither prevent the answer nor change the model."""
    write("long.txt", "word " * 30_000)
    first = await chat.function(bind(chat, {"prompt": "?", "files": ["long.txt"], "model": "kimi-see"}), context)
    assert isinstance(first, ToolOutput)
    assert isinstance(first.data, dict)
    more = {"prompt": "And?", "continuation_id": first.data["continuation_id"], "model": "small"}
    second = await chat.function(bind(chat, more), context)
    assert context.requests[-1].files == ()
    assert isinstance(second, ToolOutput)
    assert isinstance(second.data, dict)
    assert "long.txt" in [part["what"] for part in second.data["omitted"]]


async def test_files_are_limited_and_never_guessed(
    context: "Context", write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest turn comes first. A name that two workspace directories have is not read."""
    turns = [Turn("user", "?", files=("a.txt", "b.txt")), Turn("user", "?", files=("c.txt",))]
    for name in ("a.txt", "b.txt", "c.txt"):
        write(name, name)
    files, omitted = await earlier_files(turns, ["b.txt"], context)
    assert ([file.name for file in files], omitted) == (["c.txt", "a.txt"], ())
    for limit in ("MAX_EARLIER_FILES", "MAX_EARLIER_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(module, limit, 1 if limit == "MAX_EARLIER_FILES" else 5)
            files, omitted = await earlier_files(turns, [], context)
        assert [part.what for part in omitted] == ["a.txt", "b.txt"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.txt").write_text("another")
    context.files = FileAccess((*context.files.roots, other))
    _, (ambiguous,) = await earlier_files(turns[1:], [], context)
    assert "several workspace directories" in ambiguous.reason


def test_the_time_of_a_slow_model_is_announced() -> None:
    """The progress text says how long one attempt and the whole may take, if the model thinks long."""
    assert waiting_time(25, 330) == ""
    assert waiting_time(120, 330) == " (at most 330 s, 120 s per attempt)"
    assert waiting_time(300, 2) == " (at most 2 s)"
