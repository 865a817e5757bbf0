"""The matrix: what it may say, which tools it leaves out and why, and that the shipped one has them all."""

from pathlib import Path

import pytest
from toold.tools import load_registry, simulated_tools

from baseline.matrix import SHIPPED, Case, Matrix, MatrixError, choose, read_matrix, workspace_of

MATRIX = Matrix(
    {
        "echo": Case(arguments={"text": "a"}),
        "writes": Case(only_simulated="it leaves something behind"),
        "never": Case(skip="it takes an hour"),
    }
)
LISTED = frozenset({"echo", "writes", "never", "new"})


def test_the_shipped_matrix_has_every_tool() -> None:
    """Each tool that the daemon ships with is called, or is named with the reason why it is not."""
    names = {tool.name for tool in load_registry(simulated_tools(Path("unused"))).tools}
    assert names - set(read_matrix(SHIPPED).tools) == set()


def test_the_shipped_matrix_has_no_tool_that_is_gone() -> None:
    """What the shipped matrix speaks of exists."""
    names = {tool.name for tool in load_registry(simulated_tools(Path("unused"))).tools}
    assert set(read_matrix(SHIPPED).tools) - names == set()


@pytest.mark.parametrize("simulated", [True, False])
def test_what_is_not_called_says_why(simulated: bool) -> None:
    """Tools that the daemon lacks, the matrix lacks, or the matrix skips are named with their reason."""
    called, skipped = choose(MATRIX, ("echo", "writes", "never", "new", "gone"), LISTED, simulated=simulated)
    reasons = {one.tool_name: one.reason for one in skipped}
    assert called == (("echo", "writes") if simulated else ("echo",))
    assert reasons["never"] == "it takes an hour"
    assert "the matrix has no arguments" in reasons["new"]
    assert "does not list it" in reasons["gone"]
    assert reasons.get("writes") == (None if simulated else "it leaves something behind")


def test_without_a_wish_all_that_are_listed() -> None:
    """Who names no tool gets all of the toolset, by name, each once."""
    called, skipped = choose(MATRIX, None, LISTED, simulated=True)
    assert called == ("echo", "writes")
    assert [one.tool_name for one in skipped] == ["never", "new"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tools = 3", "tools"),
        ("[tools.echo", "Expected ']'"),
        ("tool = 3", r"`tool`.*the valid tables are \[tools.NAME\] and \[needs.NAME\]"),
        ("[tools.echo]\nargs = {}", r"`args` in \[tools.echo\], which may have arguments, needs"),
        ("[tools.a]\n[needs.b]\narguments = 3", r"in \[needs.b\], which may have tool, arguments, undo"),
        ("[tools.echo]\nneeds = ['files']", r"tools.echo needs 'files'"),
    ],
)
def test_an_error_in_the_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    """A matrix that is none says where it is wrong."""
    path = tmp_path / "matrix.toml"
    path.write_text(text)
    with pytest.raises(MatrixError, match=says):
        read_matrix(path)


def test_a_matrix_that_is_not_there(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(MatrixError, match=r"matrix\.toml cannot be read: No such file"):
        read_matrix(tmp_path / "matrix.toml")


def test_paths_start_beside_the_matrix(tmp_path: Path) -> None:
    """Files of the arguments are looked for in ``workspace`` beside the matrix, where that is there."""
    assert workspace_of(tmp_path / "matrix.toml") == tmp_path.resolve()
    (tmp_path / "workspace").mkdir()
    assert workspace_of(tmp_path / "matrix.toml") == tmp_path.resolve() / "workspace"
