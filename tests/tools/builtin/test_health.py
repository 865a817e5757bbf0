"""``health``: as the daemon says it, without a permit."""

from typing import TYPE_CHECKING

from toold.tools import bind
from toold.tools.builtin.health import health

if TYPE_CHECKING:
    from tests.tools.conftest import Context


async def test_it_is_what_the_daemon_says(context: "Context") -> None:
    """The same as ``/readyz`` and the op ``health`` tell, and it answers when everything is busy."""
    assert await health.function(bind(health, {}), context) == {"status": "ready", "problems": []}
    assert health.unmetered
    assert health.local
