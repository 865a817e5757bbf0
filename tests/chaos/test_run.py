"""A short fault run against the real daemon."""

from pathlib import Path

import pytest
from tests.chaos.callers import call_specs
from tests.chaos.run import Scale, run


def test_a_seed_determines_the_calls_of_a_client() -> None:
    """Two runs with one seed draw the same calls, with effects, local calls, completions, repeats and cancels."""
    some = [call_spec for call_spec, _ in zip(call_specs("client-1", 1), range(300), strict=False)]
    assert some == [call_spec for call_spec, _ in zip(call_specs("client-1", 1), range(300), strict=False)]
    assert {call_spec.tool for call_spec in some} == {"sim_effect", "echo", "chat", "execute_pipeline"}
    assert any(call_spec.repeat for call_spec in some)
    assert any(call_spec.cancel_after_s for call_spec in some)


@pytest.mark.parametrize("seed", [13])  # kills first, with a jump of the clock, then drains
@pytest.mark.process
async def test_a_short_fault_run_keeps_all_promises(tmp_path: Path, seed: int) -> None:
    """Twelve clients make some 140 calls while the daemon stops twice or more; all promises hold."""
    scale = Scale(calls=125, clients=12, seed=seed, limit_s=300, between=(40, 50), hostile=False)
    outcome = await run(tmp_path, scale)
    assert outcome.kept, {promise: ids for promise, ids in outcome.breaches.items() if ids}
    figures = outcome.figures
    assert int(figures["calls made"]) >= 125
    assert int(figures["broken by the proxy"]) > 0
    assert int(figures.get("daemon killed", 0)) > 0
