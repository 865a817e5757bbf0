"""The wheel that ``pip install .``, ``pipx install .`` and ``uvx --from . toold`` build, without a checkout."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"[A-Za-z0-9._-]+")


@pytest.fixture(scope="module")
def wheel(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what the build reads: it writes next to its sources."""
    copy = tmp_path_factory.mktemp("build")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", "dist", ".", cwd=copy)
    (built,) = (copy / "dist").iterdir()
    return built


def pip(*arguments: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def metadata(wheel: Path) -> list[str]:
    """What the wheel requires, extras included."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode()).get_all("Requires-Dist", [])


def required(requirements: list[str]) -> set[str]:
    """The names of the packages that are installed for these requirements, without any extra of toold."""
    waiting = [line for line in requirements if "extra ==" not in line]
    names: set[str] = set()
    while waiting:
        match = NAME.match(waiting.pop())
        assert match is not None
        if match[0].lower() in names:
            continue
        try:
            found = distribution(match[0])
        except PackageNotFoundError:
            continue  # for another platform or Python
        names.add(match[0].lower())
        waiting += [line for line in found.requires or [] if "extra ==" not in line]
    return names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``toold`` of a virtual environment that has the wheel and the locked versions of what it requires."""
    home = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (packages,) = home.glob("lib/python3*/site-packages")
    for name in required(metadata(wheel)):
        files = distribution(name).files or []
        for top in {file.parts[0] for file in files if file.parts[0] not in {"..", "__pycache__"}}:
            source = Path(str(distribution(name).locate_file(top)))
            if source.exists() and not (packages / top).exists():
                (packages / top).symlink_to(source)
    pip(
        "--python", str(home / "bin/python"), "install", "--no-deps", "--no-index", "--no-compile", str(wheel), cwd=home
    )
    return home / "bin/toold"


def test_each_package_is_named_to_the_build() -> None:
    """A new directory of modules works in the checkout, and would be missing in the wheel."""
    named = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    directories = {path.parent.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*.py")}
    assert set(named) == {".".join(("toold", *path.parts)) for path in directories}


def test_everything_that_toold_reads_is_in_the_wheel(wheel: Path) -> None:
    """Each file below src/: models, migrations, workflow definitions and the marker of types, not only modules."""
    sources = {f"toold/{path.relative_to(ROOT / 'src')}" for path in (ROOT / "src").rglob("*") if path.is_file()}
    # The sources of the dashboard are bundled into its assets.
    sources = {name for name in sources if "__pycache__" not in name and "/frontend/" not in name}
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert any(name.endswith("models.toml") for name in packed)
    assert packed == sources


def test_every_extra_but_those_of_the_repository_is_in_all(wheel: Path) -> None:
    """``pip install '.[all]'`` installs what a daemon can use, except glm, which does not resolve with the others, and
    pydantic-ai, which only some packages of agents need.
    """
    (everything,) = [line for line in metadata(wheel) if re.search(r"extra == .all.", line)]
    extras = set(re.findall(r'extra == "([\w-]+)"', "\n".join(metadata(wheel))))
    match = re.search(r"\[(.+?)\]", everything)
    assert match is not None
    assert set(match[1].split(",")) == extras - {"all", "glm", "baseline", "pydantic-ai"}


def test_the_installed_command_runs_a_daemon_and_calls_its_tools(installed: Path, tmp_path: Path) -> None:
    """With no extra and outside of the checkout: every step of ``toold demo``, with a file of the current directory.
    Its daemon is a separate one, whatever the environment says, and it leaves nothing behind.
    """
    foreign = ("TOOLD_", "PYTHON", "KIMI_", "GLM_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    python = installed.with_name("python")
    where = [str(python), "-c", "import toold; print(toold.__file__)"]
    origin = subprocess.run(where, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
    assert Path(origin.strip()).is_relative_to(installed.parents[1])
    (tmp_path / "README.md").write_text("# A test\n")
    env |= {"TOOLD_PORT": "1", "TOOLD_TOKEN": "not-the-token-at-all"}
    shown = subprocess.run([str(installed), "demo"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    titles = [line for line in shown.stdout.splitlines() if line[:3].strip(" .").isdigit()]
    assert len(titles) == 16
    assert "README.md" in shown.stdout
    assert 'scribe answered after 2 turns: "The note is written."; sim_effect.log has the note once' in shown.stdout
    assert titles[-1] == "16. Stop it with SIGTERM"
    assert "CANCELLED" in shown.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
