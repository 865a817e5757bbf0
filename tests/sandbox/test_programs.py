"""Programs as models write them, unchanged: loops over tools, gathering, filters, regular expressions, JSON, dates.

Each is a file in programs/; its first line has what it returns in CPython, over the same tools. ``make programs``
prints the share that runs unchanged.
"""

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
"""Those that the engine cannot run, and what it says; the tool's description tells models so."""
RETURNS: Final = "# returns: "


def parts(path: Path) -> tuple[Any, str]:
    """What a program returns, and its code."""
    first, code = path.read_text(encoding="utf-8").split("\n", 1)
    return json.loads(first.removeprefix(RETURNS)), code


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PROGRAMS])
async def test_a_program_returns_what_it_does_elsewhere(run: Any, path: Path) -> None:
    """Or the engine says what it lacks."""
    expected, code = parts(path)
    if path.stem in LACKING:
        with pytest.raises(ProgramFailedError, match=LACKING[path.stem]):
            await run(code)
        return
    assert await run(code) == expected


def test_most_run_unchanged() -> None:
    """There are forty at least, and nineteen of twenty run."""
    running = len(PROGRAMS) - len(LACKING)
    print(f"{running} of {len(PROGRAMS)} programs run unchanged ({running / len(PROGRAMS):.0%})")  # noqa: T201 - make programs
    assert len(PROGRAMS) >= 40
    assert running / len(PROGRAMS) >= 0.95
