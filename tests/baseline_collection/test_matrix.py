"""The matrix: its format, the tools that it skips with their reasons, and the shipped matrix."""

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


def test_shipped_matrix_has_every_tool() -> None:
    """The shipped matrix has every tool of the daemon."""
    names = {tool.name for tool in load_registry(simulated_tools(Path("unused"))).tools}
    assert names - set(read_matrix(SHIPPED).tools) == set()


def test_shipped_matrix_has_no_unknown_tools() -> None:
    """Every tool in the shipped matrix exists."""
    names = {tool.name for tool in load_registry(simulated_tools(Path("unused"))).tools}
    assert set(read_matrix(SHIPPED).tools) - names == set()


@pytest.mark.parametrize("simulated", [True, False])
def test_skipped_tools_have_a_reason(simulated: bool) -> None:
    """Tools that the daemon does not list, that the matrix lacks, or that the matrix skips are reported with a
    reason.
    """
    called, skipped = choose(MATRIX, ("echo", "writes", "never", "new", "gone"), LISTED, simulated=simulated)
    reasons = {one.tool_name: one.reason for one in skipped}
    assert called == (("echo", "writes") if simulated else ("echo",))
    assert reasons["never"] == "it takes an hour"
    assert "the matrix has no arguments" in reasons["new"]
    assert "does not list it" in reasons["gone"]
    assert reasons.get("writes") == (None if simulated else "it leaves something behind")


def test_default_selection_is_the_toolset() -> None:
    """If no tools are named, all tools of the toolset are selected, sorted by name."""
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
def test_invalid_matrix_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    """The error of an invalid matrix says where it is invalid."""
    path = tmp_path / "matrix.toml"
    path.write_text(text)
    with pytest.raises(MatrixError, match=says):
        read_matrix(path)


def test_missing_matrix_is_an_error(tmp_path: Path) -> None:
    """The error of a missing file names it."""
    with pytest.raises(MatrixError, match=r"matrix\.toml cannot be read: No such file"):
        read_matrix(tmp_path / "matrix.toml")


def test_workspace_is_next_to_the_matrix(tmp_path: Path) -> None:
    """Files in arguments are relative to ``workspace`` next to the matrix, or to the matrix's directory if there is
    none.
    """
    assert workspace_of(tmp_path / "matrix.toml") == tmp_path.resolve()
    (tmp_path / "workspace").mkdir()
    assert workspace_of(tmp_path / "matrix.toml") == tmp_path.resolve() / "workspace"
