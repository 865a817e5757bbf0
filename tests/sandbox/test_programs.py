"""Typical programs of models run unchanged: loops over tools, gathering, filters, regular expressions, JSON, dates.
Each is a file in programs/. Its first line contains the value that it returns in CPython with the same tools. ``make
programs`` prints the share of programs that run unchanged."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from toold.sandbox import ProgramFailedError

PROGRAMS: Final = sorted((Path(__file__).parent / "programs").glob("*.py"))
LACKING: Final = {
    "median_with_statistics": "No module named 'statistics'",
    "substitute_with_function": "callable replacement",
}
"""Programs that the engine cannot run, with the error; the description of the tool mentions these limits."""
RETURNS: Final = "# returns: "


def parts(path: Path) -> tuple[Any, str]:
    """The expected value of a program, and its code."""
    first, code = path.read_text(encoding="utf-8").split("\n", 1)
    return json.loads(first.removeprefix(RETURNS)), code


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PROGRAMS])
async def test_a_program_returns_the_same_as_in_cpython(run: Any, path: Path) -> None:
    """A program in ``LACKING`` fails with the listed error instead."""
    expected, code = parts(path)
    if path.stem in LACKING:
        with pytest.raises(ProgramFailedError, match=LACKING[path.stem]):
            await run(code)
        return
    assert await run(code) == expected


def test_most_programs_run_unchanged() -> None:
    """At least 95 percent of at least 40 programs run."""
    running = len(PROGRAMS) - len(LACKING)
    print(f"{running} of {len(PROGRAMS)} programs run unchanged ({running / len(PROGRAMS):.0%})")  # noqa: T201 - make programs
    assert len(PROGRAMS) >= 40
    assert running / len(PROGRAMS) >= 0.95
