"""Contention: the share of a run in which a task waited for a CPU, if the kernel reports it."""

from pathlib import Path

import pytest

from baseline.contention import Contention, stalled_s

TELLS = "some avg10=0.00 avg60=1.50 avg300=2.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"


def test_kernel_total_is_read(tmp_path: Path) -> None:
    """The total of ``some`` counts, in microseconds."""
    source = tmp_path / "cpu"
    source.write_text(TELLS.format(2_500_000))
    assert stalled_s(source) == 2.5


def test_share_covers_only_the_run(tmp_path: Path) -> None:
    """Only waiting since the start of the run counts, and the share is at most 1."""
    source = tmp_path / "cpu"
    source.write_text(TELLS.format(5_000_000))
    contention = Contention(source)
    assert contention.share() == 0.0
    source.write_text(TELLS.format(5_000_000_000))
    assert contention.share() == 1.0


@pytest.mark.parametrize("content", [None, "", "some avg10=0.00\n", "what else\n", "some total=many\n"])
def test_share_is_unknown_without_kernel_support(tmp_path: Path, content: str | None) -> None:
    """Without the kernel's figure the share is None, and there is no error."""
    source = tmp_path / "cpu"
    if content is not None:
        source.write_text(content)
    assert Contention(source).share() is None
