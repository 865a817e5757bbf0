"""``build_ui.py DIRECTORY``: bundles the dashboard's scripts and styles into a directory (``make ui``)."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FRONTEND = ROOT / "src/dashboard/frontend"
PACKAGES = ROOT / ".venv/ui"
ESBUILD = PACKAGES / "node_modules/.bin/esbuild"


def build(directory: Path) -> None:
    """Writes ``app.js``, ``app.css`` and ``icon.svg``. The same sources and packages give the same bytes.

    Raises:
        subprocess.CalledProcessError: a source is wrong; esbuild has said where.
    """
    directory.mkdir(parents=True, exist_ok=True)
    sources = PACKAGES / "sources"  # next to the packages, where esbuild looks for them
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(FRONTEND, sources, ignore=shutil.ignore_patterns("node_modules"))
    options = [
        "--bundle",
        "--minify",
        "--format=iife",
        "--target=es2022",
        "--legal-comments=inline",
        "--log-level=warning",
    ]
    command = [str(ESBUILD), "app.js", *options, f"--outdir={directory.resolve()}"]
    subprocess.run(command, cwd=sources, check=True)  # noqa: S603 - our own command
    shutil.copy(FRONTEND / "icon.svg", directory)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
