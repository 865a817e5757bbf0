"""Runs the fuzz targets one after the other: ``python -m tests.fuzz [--minutes 5] [--target NAME]``.

Each runs in its own process, ``fuzz_process``. It starts with the inputs in ``corpus`` and with those that earlier runs
found, which are in ``.fuzz``. An input that fails is saved in ``crashes``, where ``test_fuzz_targets.py`` repeats it.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from .fuzz_targets import CORPUS, CRASHES, TARGETS, seed_words

FOUND: Final = Path(".fuzz")
MAX_INPUT_BYTES: Final = 32 * 1024
"""Long enough for quadratic work to exceed the bound on time."""
MEMORY_MIB: Final = 1024
HANG_S: Final = 60
"""An input that does not return is ended after this long; the bound on CPU time is much lower."""


class Finding(NamedTuple):
    """What one run did."""

    target: str
    seconds: int
    executions: int
    corpus: int
    crashes: tuple[Path, ...]
    ended: bool
    """It ran for its whole time."""


def fuzz(target: str, seconds: int) -> Finding:
    """Run one target; its output goes to ``.fuzz/TARGET.log``."""
    result, crashes = FOUND / target, CRASHES / target
    result.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    before = set(crashes.iterdir())
    words = FOUND / f"{target}.dict"
    words.write_text("".join(f'"{word}"\n' for word in seed_words(target)))
    flags = [f"-max_total_time={seconds}", f"-max_len={MAX_INPUT_BYTES}", "-len_control=20", f"-dict={words}"]
    flags += [
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-timeout={HANG_S}",
        f"-artifact_prefix={crashes}/",
        "-print_final_stats=1",
    ]
    log = FOUND / f"{target}.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "tests.fuzz.fuzz_process", target, *flags, str(result), str(CORPUS / target)]
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    text = log.read_text(errors="replace")
    executed = re.findall(r"^stat::number_of_executed_units: +(\d+)|^#(\d+)\s", text, re.MULTILINE)
    new = tuple(sorted(set(crashes.iterdir()) - before))
    if not any(crashes.iterdir()):
        crashes.rmdir()
    took = re.search(r"^Done \d+ runs in (\d+) second", text, re.MULTILINE)
    executions = max((int(first or other) for first, other in executed), default=0)
    return Finding(
        target, int(took[1]) if took else 0, executions, len(list(result.iterdir())), new, code == 0 and bool(took)
    )


def main() -> int:
    """Run the targets and print a line per target; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the parsers, guided by coverage.")
    parser.add_argument("--minutes", type=float, default=5.0, help="per target (%(default)g)")
    parser.add_argument("--target", choices=sorted(TARGETS), help="this one only")
    options = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed; use `make fuzz`", file=sys.stderr)
        return 2
    failed = False
    for target in [options.target] if options.target else TARGETS:
        done = fuzz(target, max(1, round(options.minutes * 60)))
        failed = failed or not done.ended
        verdict = "ok" if done.ended else f"FAILED, see {FOUND / target}.log"
        print(
            f"{target:<20}{done.executions:>10} inputs{done.seconds:>6} s{done.corpus:>7} kept  {verdict}", flush=True
        )
        for crash in done.crashes:
            print(f"  {crash}: it fails in tests/fuzz/test_fuzz_targets.py until it is fixed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
