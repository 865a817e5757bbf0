"""A daemon that signs in to a real authorization server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from toold.providers.simulator import Simulator

from .oauth_world import ROBOT_SECRET, OAuthWorld, open_oauth_world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def oauth(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OAuthWorld]:
    """One daemon for all tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROBOT_SECRET", ROBOT_SECRET)
        async with Simulator() as simulator, AsyncExitStack() as stack:
            yield await open_oauth_world(tmp_path_factory.mktemp("oauth"), simulator, stack)
