"""The agents of google-adk, with its own client of OpenAI's API and sessions in memory.

``.venv/peers/adk/bin/python -m benchmarks.agents.adk_runs PORT`` (``run_rounds``); PORT is the vendor's.
"""

import sys
from importlib.metadata import version

from google.adk.agents import Agent
from google.adk.integrations.openai import OpenAILlm
from google.adk.runners import InMemoryRunner
from google.genai import types

from .flow import AGENTS, DESCRIPTION, INSTRUCTIONS, MODEL, TOOLS
from .run_rounds import serve_rounds

_USER = "customer"


def main() -> None:
    """Create the agents, and run rounds."""
    model = OpenAILlm(model=MODEL, base_url=f"http://127.0.0.1:{sys.argv[1]}/v1", api_key="none")
    runners = [
        InMemoryRunner(
            Agent(
                name=f"agent{number}",
                model=model,
                description=DESCRIPTION,
                instruction=INSTRUCTIONS,
                tools=list(TOOLS),
            ),
            app_name=f"agent{number}",
        )
        for number in range(AGENTS)
    ]

    async def ask(number: int, question: str) -> str:
        runner = runners[number]
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id=_USER)
        message = types.Content(role="user", parts=[types.Part(text=question)])
        answer = ""
        async for event in runner.run_async(user_id=_USER, session_id=session.id, new_message=message):
            if event.is_final_response() and event.content:
                answer = "".join(part.text or "" for part in event.content.parts or ())
        await runner.session_service.delete_session(app_name=runner.app_name, user_id=_USER, session_id=session.id)
        return answer

    serve_rounds(f"google-adk {version('google-adk')}, openai {version('openai')}", ask)


if __name__ == "__main__":
    main()
