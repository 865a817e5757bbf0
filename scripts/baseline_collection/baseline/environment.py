"""The environment of a run: machine, Python, packages, commit."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from .record import Environment, Machine

ROOT: Final = Path(__file__).parents[3]
PACKAGES: Final = (
    "toold",
    "websockets",
    "msgspec",
    "uvloop",
    "pydantic",
    "openai",
    "zhipuai",
    "zai-sdk",
    "numpy",
    "scipy",
)


def environment(daemon: str, checkout: Path = ROOT) -> Environment:
    """The current environment. ``daemon`` is the name and version that the daemon reports, ``checkout`` its source
    directory.
    """
    return Environment(
        machine=machine(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages={name: found for name in PACKAGES if (found := _version(name))},
        commit=commit(checkout),
        daemon=daemon,
    )


def machine() -> Machine:
    """This machine, without data that identifies it or its user."""
    return Machine(
        system=platform.platform(),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_mib=_memory_mib(),
        load_average=tuple(round(load, 2) for load in os.getloadavg()),
    )


def commit(directory: Path) -> str | None:
    """The commit that is checked out, with ``+`` if files differ from it; None without git or a checkout."""
    git = shutil.which("git")
    if git is None:
        return None

    def ask(*words: str) -> str | None:
        done = subprocess.run([git, "-C", directory, *words], capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
        return done.stdout.strip() if done.returncode == 0 else None

    head = ask("rev-parse", "HEAD")
    return head and head + ("+" if ask("status", "--porcelain") else "")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _memory_mib() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (ValueError, OSError):
        return None


def _processor() -> str:
    """The processor's name: from a file on Linux, from ``platform`` elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
