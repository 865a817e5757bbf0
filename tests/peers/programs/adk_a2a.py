"""Runs google-adk's RemoteA2aAgent and prints its findings as JSON. An interpreter that has google-adk runs it; it
imports nothing of toold.

Its first argument is the agent's URL, the token, and a text that makes the agent ask its client a question.
"""

import asyncio
import json
import sys
import warnings
from typing import Any

import httpx
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

PREFIX = "a2a:"
PATIENCE_S = 120.0


async def ask(runner: InMemoryRunner, session: str, text: str) -> dict[str, Any]:
    """What the agent answered or wants to know, in how many events, and the task and context of the last one."""
    events = [
        event
        async for event in runner.run_async(
            user_id="user", session_id=session, new_message=types.Content(role="user", parts=[types.Part(text=text)])
        )
    ]
    errors = [event.error_message for event in events if event.error_message]
    parts = [part for event in events if event.content for part in event.content.parts or []]
    texts = [part.text for part in parts if part.text]
    wanted = [part.function_call.args for part in parts if part.function_call]
    metadata = events[-1].custom_metadata or {}
    response = metadata.get(f"{PREFIX}response") or {}
    return {
        "text": texts[-1] if texts else "",
        "wanted": wanted,
        "errors": errors,
        "events": len(events),
        "task": metadata.get(f"{PREFIX}task_id"),
        "context": metadata.get(f"{PREFIX}context_id"),
        "state": (response.get("status") or {}).get("state"),
    }


async def main(url: str, token: str, question: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
        card = f"{url}/.well-known/agent-card.json"
        runner = InMemoryRunner(agent=RemoteA2aAgent(name="helper", agent_card=card, httpx_client=http), app_name="app")
        for session in ("one", "two"):
            await runner.session_service.create_session(app_name="app", user_id="user", session_id=session)
        first = await ask(runner, "one", "[[sim:say=first]]")
        second = await ask(runner, "one", "[[sim:say=second]]")
        asked = await ask(runner, "two", question)
        answered = await ask(runner, "two", "The blue one.")
    return {"first": first, "second": second, "asked": asked, "answered": answered}


warnings.simplefilter("ignore")
print(json.dumps(asyncio.run(main(*json.loads(sys.argv[1])))))
