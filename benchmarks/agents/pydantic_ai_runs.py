"""The agents of pydantic-ai.

``.venv/peers/pydantic-ai/bin/python -m benchmarks.agents.pydantic_ai_runs PORT`` (``run_rounds``): PORT is that of
the vendor.
"""

import sys
from importlib.metadata import version

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from .flow import AGENTS, INSTRUCTIONS, MODEL, TOOLS
from .run_rounds import serve_rounds


def main() -> None:
    """Create the agents, and run rounds."""
    provider = OpenAIProvider(base_url=f"http://127.0.0.1:{sys.argv[1]}/v1", api_key="none")
    model = OpenAIChatModel(MODEL, provider=provider)
    agents = [
        Agent(model, name=f"agent{number}", instructions=INSTRUCTIONS, tools=list(TOOLS)) for number in range(AGENTS)
    ]

    async def ask(number: int, question: str) -> str:
        return str((await agents[number].run(question)).output)

    serve_rounds(f"pydantic-ai {version('pydantic-ai-slim')}, openai {version('openai')}", ask)


if __name__ == "__main__":
    main()
