"""`make bench` compares its rounds with those of the last run of the same machine."""

from pathlib import Path

import msgspec
from benchmarks.earlier_run import EarlierRun, compared, last_run
from benchmarks.measure import Ratios

MACHINE = {"system": "Linux", "processor": "a", "cores": 2, "memory_mib": 100, "python": "3.11", "load_average": [9]}
BEFORE = (4.0, 4.1, 3.9, 4.05, 3.95)


def run(*cpu: float, date: str = "2026-01-01T00:00:00Z", **machine: object) -> EarlierRun:
    """A run with these ratios of CPU time; as many calls per second in each round."""
    return EarlierRun(date, MACHINE | machine, Ratios(cpu, (0.25,) * len(cpu), (0.1,)))


def test_the_last_run_of_this_machine_is_found(tmp_path: Path) -> None:
    """Records of other machines, and those that cannot be read, are passed over."""
    for number, record in enumerate((run(1.0, 1.0), run(2.0, 2.0, load_average=[1]), run(3.0, 3.0, cores=64))):
        (tmp_path / f"bench-2026-01-0{number + 1}.json").write_bytes(msgspec.json.encode(record))
    (tmp_path / "bench-2026-01-09.json").write_text('{"date": "2026-01-09", "machine": {}}')
    found = last_run(tmp_path, MACHINE)
    assert found is not None
    assert found.ratios.cpu_per_call == (2.0, 2.0)
    assert last_run(tmp_path, MACHINE | {"python": "3.12"}) is None


def test_the_verdict_needs_a_large_and_certain_change() -> None:
    """Less CPU time is better; a small change, and one that the rounds do not agree on, are not one."""

    def verdict(*after: float) -> str:
        line = compared(run(*BEFORE), run(*after).ratios).splitlines()[1]
        assert "CPU/call" in line
        return line.rpartition(": ")[2]

    assert verdict(*(value * 0.7 for value in BEFORE)) == "better"
    assert verdict(*(value * 1.4 for value in BEFORE)) == "worse"
    assert verdict(*(value * 1.02 for value in BEFORE)) == "same"
    assert verdict(2.0, 8.0, 3.0, 7.0, 4.0) == "not enough data"
    assert verdict(2.0) == "not enough data"
