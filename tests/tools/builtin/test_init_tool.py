"""``00_INIT`` returns the instructions, for clients that do not show them to the model."""

from typing import Any

from toold.tools import Toolset, bind, instructions, load_registry
from toold.tools.builtin.init_tool import init

OWN = {tool.name: tool for tool in load_registry().tools}


async def test_init_returns_the_instructions(context: Any) -> None:
    """The text has the instructions of the session's toolset, and a repeated call returns the same text."""
    for toolset in (Toolset("full"), Toolset("mine", ("chat",), presentation="code")):
        context.tools, context.toolset = OWN, toolset
        expected = instructions(context.toolset_view, simulated=False)
        assert await init.run(bind(init, {}), context) == expected == await init.run(bind(init, {}), context)
        assert f"'{toolset.name}'" in expected


async def test_init_reports_simulated_answers(context: Any) -> None:
    context.tools = OWN
    context.daemon.simulated = True
    assert "SIMULATED" in await init.run(bind(init, {}), context)


def test_its_description_makes_the_call_optional() -> None:
    """The call is also free: it needs no permit and no vendor."""
    assert "Skip this call if you already have toold's instructions" in " ".join(init.description.split())
    assert init.unmetered
    assert init.local
