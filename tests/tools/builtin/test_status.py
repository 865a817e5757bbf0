"""``status``: the daemon's own view, asked for as many calls as wanted."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import bind
from toold.tools.builtin.status import status

if TYPE_CHECKING:
    from tests.tools.conftest import Context


@pytest.mark.parametrize(("arguments", "shown"), [({}, 10), ({"recent": 0}, 0), ({"recent": 100}, 100)])
async def test_the_last_calls_are_as_many_as_asked_for(
    context: "Context", arguments: dict[str, Any], shown: int
) -> None:
    """Ten of the last calls are shown unless the caller says otherwise."""
    view = await status.function(bind(status, arguments), context)
    assert len(view["calls"]["recent"]) == shown


@pytest.mark.parametrize("recent", [-1, 101, "5", 1.5, None])
def test_a_wrong_number_is_refused(recent: Any) -> None:
    """``recent`` is a whole number from 0 to 100."""
    with pytest.raises(InvalidArgumentsError, match="recent should be"):
        bind(status, {"recent": recent})
