"""``version``: which daemon answers."""

import platform
from typing import TYPE_CHECKING

import pytest
from toold import __version__
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import bind
from toold.tools.builtin.version_tool import version

if TYPE_CHECKING:
    from tests.tools.conftest import Context


async def test_it_names_itself(context: "Context") -> None:
    """Name, version, protocol and Python are what runs here."""
    assert await version.function(bind(version, {}), context) == {
        "name": "toold",
        "version": __version__,
        "protocol": 1,
        "python": platform.python_version(),
    }


def test_it_takes_no_arguments() -> None:
    """A surplus argument is refused though there is nothing it could be meant for."""
    with pytest.raises(InvalidArgumentsError, match="verbose is not an argument; there are none"):
        bind(version, {"verbose": True})
