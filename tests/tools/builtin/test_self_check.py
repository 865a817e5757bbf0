"""``self-check``: every check with its verdict, why, and what to do."""

from typing import TYPE_CHECKING, Any

from toold.tools import Answer, bind
from toold.tools.builtin.self_check import self_check

if TYPE_CHECKING:
    from tests.tools.conftest import Context

DISK = {"check": "disk", "ok": False, "status": "warn", "why": "5 MiB are free", "what_to_do": "free some"}
STORE = {"check": "store", "ok": True, "status": "ok", "why": "a commit", "what_to_do": None}


async def run(context: "Context", *checks: dict[str, Any]) -> Answer:
    context.daemon.checks = list(checks)
    answer = await self_check.function(bind(self_check, {}), context)
    assert isinstance(answer, Answer)
    return answer


async def test_it_is_ok_where_every_check_is(context: "Context") -> None:
    """One that is not says what to do, in the text too."""
    assert (await run(context, STORE)).data == {"ok": True, "checks": [STORE]}
    answer = await run(context, STORE, DISK)
    assert answer.data == {"ok": False, "checks": [STORE, DISK]}
    assert answer.text == "ok    store: a commit\nwarn  disk: 5 MiB are free; free some"


def test_it_takes_no_permit_and_has_the_name_that_callers_know() -> None:
    """With a dash."""
    assert (self_check.name, self_check.unmetered, self_check.local) == ("self-check", True, True)
