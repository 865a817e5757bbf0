"""``toold stubs``: which files are written, and which are not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.tools import load_registry, module_for

if TYPE_CHECKING:
    from tests.cli.conftest import Operated, Run

SOURCE = module_for([load_registry().get("echo"), load_registry().get("version")]).source_for("tools")


def test_a_module_is_written_for_each_source(run: Run, operated: Operated, tmp_path: Path) -> None:
    """All tools, into a created directory; existing stub modules are overwritten."""
    operated.answers["GET /operator/stubs/full"] = (200, {"modules": {"tools": SOURCE, "crm": SOURCE}})
    out = tmp_path / "a" / "stubs"
    for _ in range(2):
        result = run("stubs", "--out", str(out))
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout == f"{out / 'tools.py'}: 2 functions\n{out / 'crm.py'}: 2 functions\n"
    assert {path.name: path.read_text() for path in out.iterdir()} == {"tools.py": SOURCE, "crm.py": SOURCE}


def test_an_outdated_module_is_reported(run: Run, operated: Operated, tmp_path: Path) -> None:
    """It is kept, because it may belong to another toolset; files of other programs are ignored."""
    (tmp_path / "mine.py").write_bytes(b"\xff")
    for modules in ({"tools": SOURCE, "crm": SOURCE}, {"tools": SOURCE}):
        operated.answers["GET /operator/stubs/full"] = (200, {"modules": modules})
        result = run("stubs", "--out", str(tmp_path))
    assert result.stderr == f"{tmp_path / 'crm.py'}: outdated; this module no longer exists\n"
    assert (tmp_path / "crm.py").read_text() == SOURCE


def test_a_toolset_can_be_named(run: Run, operated: Operated, tmp_path: Path) -> None:
    """The daemon refuses an unknown toolset."""
    message = "there is no toolset 'a/b'; there are full"
    operated.answers["GET /operator/stubs/a%2Fb"] = (400, {"error": {"code": "VALIDATION_ERROR", "message": message}})
    result = run("stubs", "--out", str(tmp_path), "--toolset", "a/b")
    assert (result.exit_code, result.stderr) == (1, f"{message}\n")


@pytest.mark.parametrize("content", [b"print('mine')\n", b"\xff\xfe"])
def test_another_file_is_not_overwritten(run: Run, operated: Operated, tmp_path: Path, content: bytes) -> None:
    """Nothing else is written."""
    operated.answers["GET /operator/stubs/full"] = (200, {"modules": {"crm": SOURCE, "tools": SOURCE}})
    (tmp_path / "tools.py").write_bytes(content)
    result = run("stubs", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert (
        result.stderr == f"{tmp_path / 'tools.py'} is not a stub module; choose another directory, or move the file\n"
    )
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".py"] == ["tools.py"]
    assert (tmp_path / "tools.py").read_bytes() == content


def test_an_unusable_directory_is_reported(run: Run, operated: Operated, tmp_path: Path) -> None:
    """The message has the reason."""
    operated.answers["GET /operator/stubs/full"] = (200, {"modules": {"tools": SOURCE}})
    (tmp_path / "file").write_text("")
    result = run("stubs", "--out", str(tmp_path / "file" / "below"))
    assert result.exit_code == 1
    assert "(Not a directory)" in result.stderr
