"""``00_INIT``: what instructions say, for clients that deliver none."""

from typing import Any

from toold.tools import Toolset, bind, instructions, load_registry
from toold.tools.builtin.init_tool import init

OWN = {tool.name: tool for tool in load_registry().tools}


async def test_its_text_is_that_of_the_instructions(context: Any) -> None:
    """Word for word, for the toolset of whoever asks; early, twice or never makes no difference."""
    for toolset in (Toolset("full"), Toolset("mine", ("chat",), presentation="code")):
        context.tools, context.toolset = OWN, toolset
        told = instructions(context.toolset_view, simulated=False)
        assert await init.run(bind(init, {}), context) == told == await init.run(bind(init, {}), context)
        assert f"'{toolset.name}'" in told


async def test_what_is_simulated_is_said(context: Any) -> None:
    """As it is to clients that read the instructions."""
    context.tools = OWN
    context.daemon.simulated = True
    assert "SIMULATED" in await init.run(bind(init, {}), context)


def test_it_is_worded_by_condition() -> None:
    """Nobody is told to call it at once, and it is free: no permit, no vendor, nothing to write down."""
    assert "If you have not been given toold's instructions yet" in init.description
    assert "skip it if you have" in " ".join(init.description.split())
    assert init.unmetered
    assert init.local
