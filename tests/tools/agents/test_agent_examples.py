"""The agents of the README and of docs/agents.md run without changes."""

import re
import tomllib
from pathlib import Path

import pytest
from toold.cli.agent_evals import EvalRunner, read_eval_file
from toold.tools import Agent, read_agents

from .hosted import Hosted

ROOT = Path(__file__).parents[3]
PAGES = ("README.md", "docs/agents.md")

pytestmark = pytest.mark.asyncio(loop_scope="module")


def examples(page: str) -> dict[str, Agent]:
    """The agents in the TOML blocks of a page."""
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    tables = [tomllib.loads(block).get("agents", {}) for block in blocks]
    return {name: agent for table in tables for name, agent in read_agents(table).items()}


async def test_the_cases_of_the_page_run(hosted: Hosted, tmp_path: Path) -> None:
    """The evaluation of docs/agents.md is a valid file, and its agent answers each case."""
    page = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(# cases\.yaml\n.*?)```", page, re.DOTALL)
    (tmp_path / "cases.yaml").write_text(block, encoding="utf-8")
    hosted.daemon.agents.apply(examples("docs/agents.md"))
    await hosted.daemon.publisher.published()
    runner = EvalRunner(hosted.client, read_eval_file(tmp_path / "cases.yaml"), lambda *_: None)
    for case in await runner.run(runs=1):
        assert [outcome.run_id is not None for outcome in case.runs] == [True]


@pytest.mark.parametrize("page", PAGES)
async def test_the_agents_of_a_page_run(hosted: Hosted, page: str) -> None:
    """Each example is a valid definition whose tools exist, and it answers."""
    agents = examples(page)
    assert agents
    hosted.daemon.agents.apply(agents)
    await hosted.daemon.publisher.published()
    for name in agents:
        answer = await hosted.ask(name, "Is everything well?")
        assert answer.structured["state"] == "done"
