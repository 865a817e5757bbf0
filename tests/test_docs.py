"""The documents keep up with the code: what exists is described, what is cited exists, what is shown runs."""

import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from tests.daemon_environment import daemon_environment
from toold.daemon import Settings
from toold.protocol.daemon_address import DaemonAddress, decode_address
from toold.protocol.error_codes import ErrorCode
from toold.protocol.frames import ClientFrame, ServerFrame
from toold.tools import load_registry

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PROMISES = sorted((ROOT / "docs/promises").glob("*.md"))
FRAMES = [*get_args(ClientFrame), *get_args(ServerFrame)]
DEFAULTS = {
    name: field.default
    for name, field in Settings.model_fields.items()
    if isinstance(field.default, str | int | float) and not field.is_required()
}
"""Settings whose default is one value."""
BOUNDS = sorted(
    name for name, value in DEFAULTS.items() if not isinstance(value, bool | str) and not name.endswith("port")
)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def row(text: str, cell: str) -> str:
    """The one table row of a page that has this cell."""
    rows = [line for line in text.splitlines() if line.startswith("|") and cell in re.split(r" ?\| ?", line)]
    assert len(rows) == 1, f"{len(rows)} rows have the cell {cell}"
    return rows[0]


def shown(value: object) -> str:
    """A value as the pages write it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


# --- what exists is described ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", list(ErrorCode))
def test_each_error_code_has_a_row(code: ErrorCode) -> None:
    """docs/protocol.md says what each code means and what a client should do."""
    assert all(re.split(r" ?\| ?", row(page("docs/protocol.md"), f"`{code}`"))[1:-1])


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.__struct_config__.tag)
def test_each_frame_is_described_with_its_fields(frame: type[msgspec.Struct]) -> None:
    """docs/protocol.md names every op of either side and every field of its frame."""
    text = page("docs/protocol.md")
    names = {str(frame.__struct_config__.tag), *frame.__struct_encode_fields__}
    assert {name for name in names if not re.search(rf"`{name}`|`{name}:|\"{name}\"", text)} == set()


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_each_setting_is_listed_with_its_default(name: str) -> None:
    """docs/configuration.md has the variable of every setting, and the default that the code has."""
    listed = row(page("docs/configuration.md"), f"`{name}`")
    assert f"`TOOLD_{name.upper()}`" in listed
    assert f"`{shown(DEFAULTS[name])}`" in listed


@pytest.mark.parametrize("name", BOUNDS)
def test_each_bound_has_its_row_and_default(name: str) -> None:
    """docs/limits.md says of every bound and time that can be set how much it is."""
    text = page("docs/limits.md")
    rows = [line for line in text.splitlines() if f"| `{name}` |" in line]
    assert rows
    assert f"`{shown(DEFAULTS[name])}`" in rows[0]


@pytest.mark.parametrize("tool", load_registry().tools, ids=lambda tool: tool.name)
def test_each_tool_is_described(tool: object) -> None:
    """docs/tools.md has a section for every tool, and the README lists its name."""
    name = getattr(tool, "name", "")
    assert f"\n## {name}\n" in page("docs/tools.md")
    assert f"`{name}`" in page("README.md").partition("## Tools")[2].partition("\n## ")[0]


def test_each_dependency_has_its_line() -> None:
    """docs/dependencies.md says what each package in pyproject.toml is for."""
    text, project = page("docs/dependencies.md"), page("pyproject.toml")
    names = set(re.findall(r'"([a-z][a-z0-9-]+)>=', project.partition("[project.scripts]")[0]))
    assert len(names) > 20
    assert {name for name in names if f"| `{name}` |" not in text} == set()


def test_pre_commit_runs_the_checks_of_make() -> None:
    """The hooks are the commands of ``make check`` and ``make test-fast``, and nothing else."""
    recipes = [page("Makefile").partition(f"\n{target}:")[2].partition("\n\n")[0] for target in ("check", "test-fast")]
    commands = [line for recipe in recipes for line in recipe.splitlines()[1:]]
    hooks = re.findall(r"entry: (.+)", page(".pre-commit-config.yaml"))
    assert hooks == [line.strip().replace("$(BIN)", ".venv/bin").removesuffix(" $(ARGS)") for line in commands]


# --- what is cited exists --------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_leads_somewhere(path: Path) -> None:
    """Relative links lead to files that exist, and to headings that they have."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name) if name else path
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_file_that_a_page_names_is_there(path: Path) -> None:
    """Paths below src/ and tests/ in the text exist."""
    text = path.read_text(encoding="utf-8").replace("`src/tools/wordcount.py`", "")  # the reader's own
    named = re.findall(r"`((?:src|tests)/[\w./-]+\.(?:py|toml|sql))`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_each_example_of_settings_is_toml(path: Path) -> None:
    """A reader can copy it."""
    for example in re.findall(r"^```toml\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        tomllib.loads(example)


@pytest.mark.parametrize("path", PROMISES, ids=lambda path: path.stem)
def test_each_promise_is_shown_by_tests_that_are_there(path: Path) -> None:
    """Its page ends with a list of files, each with the names of what in it would fail without the promise."""
    shown_by = path.read_text(encoding="utf-8").partition("\n## Tests\n")[2]
    entries = re.findall(r"^- `(tests/[\w/]+\.py)`: (.+?)(?=^- |^$|\Z)", shown_by, re.MULTILINE | re.DOTALL)
    assert len(entries) == shown_by.count("\n- ")
    for name, tests in entries:
        source = page(name)
        named = re.findall(r"`(\w+)`", tests)
        assert named
        assert [test for test in named if not re.search(rf"^ *(?:async )?def {test}\(", source, re.MULTILINE)] == [], (
            name
        )


def test_each_boundary_is_held_by_tests_that_are_there() -> None:
    """Each row of the threat model's boundaries names tests that exist."""
    _, _, boundaries = page("docs/security.md").partition("\n## Boundaries\n")
    rows = [line for line in boundaries.splitlines() if line.startswith("| ") and "→" in line]
    assert len(rows) > 15
    for line in rows:
        entries = re.findall(r"`(tests/[\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", line)
        assert entries, line
        for name, tests in entries:
            source = page(name)
            for test in re.findall(r"`(\w+)`", tests):
                assert re.search(rf"^ *(?:async )?def {test}\(", source, re.MULTILINE), f"{name}: {test}"


def test_each_fault_of_a_cluster_is_shown_by_tests_that_are_there() -> None:
    """Each row of the table of faults names tests, or a file of tests."""
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    rows = page.partition("| fault |")[2].partition("\n\n")[0].splitlines()[2:]
    assert rows
    folders = [ROOT / "tests" / folder for folder in ("e2e/cluster", "daemon/cluster", "store/postgres")]
    defined = {
        name
        for folder in folders
        for path in folder.glob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
    }
    for row in rows:
        shown = re.findall(r"`(test_\w+(?:\.py)?)`", row.rpartition(" | ")[2])
        assert shown, row
        assert [name for name in shown if not name.endswith(".py") and name not in defined] == [], row


def test_each_promise_has_its_page() -> None:
    """The README and docs/README.md link every page of a promise."""
    names = {f"promises/{path.name}" for path in PROMISES}
    assert len(names) == 8
    assert names == set(re.findall(r"\(docs/(promises/[\w-]+\.md)\)", page("README.md")))
    assert names == set(re.findall(r"\((promises/[\w-]+\.md)\)", page("docs/README.md")))


def test_decisions_are_numbered_and_whole() -> None:
    """They count from 1 without a gap, and each has its decision, context, rationale and consequences."""
    sections = re.split(r"^## ", page("docs/decisions.md"), flags=re.MULTILINE)[1:]
    assert [section.partition(".")[0] for section in sections] == [str(n + 1) for n in range(len(sections))]
    for section in sections:
        for part in ("Decision", "Context", "Rationale", "Consequences"):
            assert f"\n**{part}.** " in section, section.splitlines()[0]


def test_each_decision_that_the_code_cites_is_there() -> None:
    """A comment that says ``decision 4`` leads somewhere."""
    sources = [path for directory in ("src", "tests", "benchmarks") for path in (ROOT / directory).rglob("*.py")]
    cited = {n for path in sources for n in re.findall(r"\bdecision (\d+)\b", path.read_text(encoding="utf-8"))}
    assert {n for n in cited if f"\n## {n}. " not in page("docs/decisions.md")} == set()


# --- what is shown runs ----------------------------------------------------------------------------------------------


def programs(name: str) -> list[str]:
    return re.findall(r"```python\n(.+?)```", page(name), re.DOTALL)


def test_the_readme_stays_short() -> None:
    """A newcomer reads it in one sitting: at most 150 lines."""
    assert len(page("README.md").splitlines()) <= 150


def test_the_readme_opens_with_a_small_picture() -> None:
    """Its first lines show a PNG of less than 150 KB."""
    picture = re.search(r"!\[.+\]\((docs/images/.+\.png)\)", "\n".join(page("README.md").splitlines()[:5]))
    assert picture is not None
    content = (Path(__file__).parents[1] / picture[1]).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 150_000


@pytest.fixture(scope="module")
def daemon(
    starts_processes: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[DaemonAddress, dict[str, str]]]:
    """A simulated daemon in the repository's directory; returns its address and the environment that finds it."""
    state = tmp_path_factory.mktemp("state")
    env = daemon_environment(state, TOOLD_TOKEN="a-token-for-the-tests")
    command = [sys.executable, "-m", "toold", "serve", "--simulate", "--port", "0", "--http-port", "0"]
    with (state / "daemon.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=ROOT)
    try:
        while not (state / "daemon.json").exists():
            assert process.poll() is None, (state / "daemon.log").read_text()
            time.sleep(0.02)
        yield decode_address((state / "daemon.json").read_bytes()), env
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.mark.parametrize(
    ("page_name", "place", "prints"),
    [
        ("README.md", 0, "Simulated answer from .*README.md"),
        ("docs/protocol.md", 0, r"\"op\":\"hello_ack\",\"ok\":true(.|\n)*'text': 'Hello'.*None"),
        ("docs/client.md", 0, r"True \[{'type': 'text', 'text': 'Hello'}\] None"),
        ("docs/client.md", 1, "Simulated answer(.|\n)*README.md(.|\n)*glm-4.7-flash"),
    ],
)
def test_programs_run_as_they_stand(
    daemon: tuple[DaemonAddress, dict[str, str]], page_name: str, place: int, prints: str
) -> None:
    """A program copied from a page runs as the page says, on the test's port."""
    address, env = daemon
    program = programs(page_name)[place].replace(":8079/", f":{address.port}/")
    ended = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert re.search(prints, ended.stdout), ended.stdout
