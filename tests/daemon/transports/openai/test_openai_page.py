"""The examples of docs/openai.md run as they are written, with the daemon's address and token."""

import asyncio
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[4] / "docs/openai.md"


def example(language: str, contains: str, url: str, token: str) -> str:
    """The code block of this language that contains a text, with the daemon's address and token."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (block,) = [block for block in blocks if contains in block]
    return str(block.replace("http://127.0.0.1:8080", url).replace("TOKEN", token))


async def test_the_example_of_the_python_package(run_with: Any) -> None:
    """It prints the answer, the usage, and what toold adds."""
    daemon = await run_with()
    url, token = f"http://127.0.0.1:{daemon.http.port}", (daemon.settings.state_dir / "token").read_text().strip()
    printed: list[Any] = []
    code = example("python", "from openai", url, token)
    await asyncio.to_thread(exec, code, {"print": lambda *words: printed.extend(words)})
    text, usage, report = printed
    assert text.startswith("Simulated answer from glm-4.6")
    assert (usage.total_tokens > 0, report["provider"]) == (True, "glm")
