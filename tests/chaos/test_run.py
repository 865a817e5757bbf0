"""A short fault run against the real daemon: ended in the middle of calls, behind a proxy that breaks connections."""

from pathlib import Path

import pytest
from tests.chaos.callers import wishes
from tests.chaos.run import Scale, run


def test_a_client_makes_the_same_calls_in_every_run_of_a_seed() -> None:
    """Most have an effect; local calls, questions to a model, repeats and cancels are among them."""
    some = [wish for wish, _ in zip(wishes("client-1", 1), range(300), strict=False)]
    assert some == [wish for wish, _ in zip(wishes("client-1", 1), range(300), strict=False)]
    assert {wish.tool for wish in some} == {"sim_effect", "echo", "chat"}
    assert any(wish.repeat for wish in some)
    assert any(wish.cancel_after_s for wish in some)


@pytest.mark.parametrize("seed", [1])
@pytest.mark.process
async def test_nothing_is_lost_and_nothing_runs_twice(tmp_path: Path, seed: int) -> None:
    """Some 200 calls of twelve clients, over three ends of the daemon or more: every promise holds."""
    outcome = await run(tmp_path, Scale(calls=180, clients=12, seed=seed, limit_s=300, between=(50, 65)))
    assert outcome.kept, {promise: ids for promise, ids in outcome.breaches.items() if ids}
    figures = outcome.figures
    assert int(figures["calls made"]) >= 180
    assert int(figures["broken by the proxy"]) > 0
    assert int(figures.get("daemon killed", 0)) > 0
