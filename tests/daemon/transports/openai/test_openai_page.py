"""The examples of docs/openai.md run as they are written, with the daemon's address and token."""

import asyncio
from typing import Any

from tests.openai_examples import example


async def test_the_example_of_the_python_package(run_with: Any) -> None:
    """It prints the answer, the usage, and what toold adds."""
    daemon = await run_with()
    url, token = f"http://127.0.0.1:{daemon.http.port}", (daemon.settings.state_dir / "token").read_text().strip()
    printed: list[Any] = []
    code = example("python", "from openai", url, token)
    names: dict[str, Any] = {"print": lambda *words: printed.extend(words)}
    await asyncio.to_thread(exec, code, names)
    names["client"].close()
    text, usage, report = printed
    assert text.startswith("Simulated answer from glm-4.6")
    assert (usage.total_tokens > 0, report["provider"]) == (True, "glm")
