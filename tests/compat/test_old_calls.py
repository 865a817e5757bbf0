"""Each argument of the predecessors' tools works, works with a notice, or is refused as docs/migrating.md says."""

from pathlib import Path

import pytest
from tests.compat import exai_calls, pal_calls
from tests.compat.conftest import OldAnswer, Successor, answers
from tests.compat.old_calls import PUBLISHED, OldCall

TABLES = {"exai": exai_calls.CALLS, "pal": pal_calls.CALLS}
ALL = [row for table in TABLES.values() for row in table]
PAGE = (Path(__file__).parents[2] / "docs/migrating.md").read_text(encoding="utf-8")
MAX_REFUSALS = 5
CHANGED_DEFAULT = "web_search: the model searches the web only if this is true"
"""The notice of each call without this argument, in a session that sent a former form."""


def problem(row: OldCall, answer: OldAnswer) -> str:
    """How the answer differs from what the row says; empty if it does not."""
    if answer.error is not None:
        said = f"{answer.error['code']}: {answer.error['message']}"
        return "" if row.refused == answer.error["code"] else said
    if row.refused:
        return f"works, but should be refused with {row.refused}"
    unnamed = [name for name in row.noticed if not any(name in notice for notice in answer.notices)]
    if unnamed:
        return f"no notice names {', '.join(unnamed)}: {answer.notices}"
    surplus = [
        text for text in answer.argument_notices if not text.startswith((CHANGED_DEFAULT, f"{row.tool} is now "))
    ]
    if surplus and not row.noticed:
        return f"should need no notice: {surplus}"
    return ""


def test_every_published_argument_is_in_the_tables() -> None:
    """The tables have each tool and each argument of the published schemas, and no other; names of rows are unique."""
    for server, table in TABLES.items():
        sent: dict[str, set[str]] = {}
        for row in table:
            sent.setdefault(row.tool, set()).update(row.arguments)
        assert sent == {tool: set(names) for tool, names in PUBLISHED[server].items()}
    assert len({row.name for row in ALL}) == len(ALL)


def test_refusals_are_few_and_explained() -> None:
    """At most five rows are refused; docs/migrating.md has the reason of each."""
    refusals = [row.name for row in ALL if row.refused]
    print(f"{len(refusals)} of {len(ALL)} old calls are refused: {', '.join(refusals)}")  # noqa: T201 - the count is this suite's result
    assert len(refusals) <= MAX_REFUSALS
    assert [name for name in refusals if f"| `{name}` |" not in PAGE] == []


def test_each_changed_argument_is_on_the_page() -> None:
    """docs/migrating.md names each argument about which an answer says something."""
    _, _, part = PAGE.partition("\n## From EX-AI-MCP-Server and PAL\n")
    changed = {f"{row.tool} {argument}" for row in ALL for argument in row.noticed}
    assert sorted(name for name in changed if name.split()[1] not in part) == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("server", ["exai", pytest.param("pal", marks=pytest.mark.process)])
async def test_old_calls_work(successor: Successor, places: dict[str, str], server: str) -> None:
    """Each row has the outcome that its table says.

    The clients of EX-AI-MCP-Server connect by WebSocket; those of PAL start a server and use its stdin and stdout.
    """
    table = TABLES[server]
    async with successor.websocket() if server == "exai" else successor.stdio() as client:
        answered = await answers(client, table, places)
    assert {row.name: text for row in table if (text := problem(row, answered[row.name]))} == {}
