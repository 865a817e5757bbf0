"""Registers the public agents of the served registry at a LiteLLM proxy, in the background."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

import structlog

from ..agent_registry import LiteLlmRegistrySettings
from ..sources import JsonServer, UnusableAnswerError
from .registry_content import RegistryContent
from .registry_kinds import Kind

MAX_REGISTRATIONS: Final = 10
"""The attempts for one state of an agent; with the delays, about five minutes."""
FIRST_DELAY_S: Final = 1.0
MAX_DELAY_S: Final = 60.0

_log = structlog.get_logger("toold.registry")


class LiteLlmRegistration:
    """The agents that LiteLLM should have, and the results of their registration. An agent of the same name there is
    replaced."""

    def __init__(self, settings: LiteLlmRegistrySettings | None) -> None:
        self._settings = settings
        self._wanted: Mapping[str, Mapping[str, Any]] = {}
        self._done: dict[str, Mapping[str, Any]] = {}
        self._attempts: dict[str, int] = {}
        self._wake = asyncio.Event()
        self.problems: dict[str, str] = {}
        """By agent id, the reason why LiteLLM does not have the agent's current state."""

    def apply(self, settings: LiteLlmRegistrySettings | None) -> None:
        """Uses new settings, and retries the registrations that were given up."""
        if settings != self._settings:
            self._settings = settings
            self._done.clear()
            self.problems.clear()
        self._attempts.clear()
        self._wake.set()

    def update(self, content: RegistryContent) -> None:
        """Registers again after a change of the registry."""
        references = content.references()
        cards = {entry.row.id: content.view(Kind.AGENT, entry, references) for entry in content.ordered(Kind.AGENT)}
        public = {agent_id: card for agent_id, card in cards.items() if card["is_public"] and card["url"]}
        wanted = {agent_id: litellm_agent(card) for agent_id, card in public.items()}
        unchanged = {agent_id for agent_id, body in wanted.items() if self._wanted.get(agent_id) == body}
        self._attempts = {each: count for each, count in self._attempts.items() if each in unchanged}
        self.problems = {each: problem for each, problem in self.problems.items() if each in wanted}
        self._wanted = wanted
        self._wake.set()

    async def run(self) -> None:
        """Registers until cancelled."""
        while True:
            self._wake.clear()
            failures = await self._register_all()
            delay_s = min(FIRST_DELAY_S * 2 ** (failures - 1), MAX_DELAY_S) if failures else None
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._wake.wait()

    async def _register_all(self) -> int:
        """Registers the missing agents. Returns the highest number of attempts among the agents to retry."""
        settings = self._settings
        due = [each for each, body in self._wanted.items() if self._done.get(each) != body]
        due = [each for each in due if self._attempts.get(each, 0) < MAX_REGISTRATIONS]
        if settings is None or not due:
            return 0
        server = JsonServer(
            settings.url.rstrip("/"),
            table="[registry.litellm]",
            key=settings.key,
            timeout_s=settings.timeout_s,
            allow_private=settings.allow_private,
        )
        failures = 0
        try:
            for agent_id in due:
                body = self._wanted.get(agent_id)
                if body is None:
                    continue
                reason = await _registered(server, body)
                if settings is not self._settings:
                    return 0
                failures = max(failures, self._ended(agent_id, body, reason))
        finally:
            await server.close()
        return failures

    def _ended(self, agent_id: str, body: Mapping[str, Any], reason: str | None) -> int:
        """Records an attempt. Returns the number of attempts if another one will follow."""
        if reason is None:
            _log.info("LiteLLM has an agent of the registry", agent=agent_id, name=body["agent_name"])
            self._done[agent_id] = body
            self._attempts.pop(agent_id, None)
            self.problems.pop(agent_id, None)
            return 0
        attempts = self._attempts[agent_id] = self._attempts.get(agent_id, 0) + 1
        problem = f"agent {agent_id} of the registry is not registered at LiteLLM: {reason}"
        if self.problems.get(agent_id) != problem:
            _log.warning("LiteLLM does not take an agent of the registry", agent=agent_id, reason=reason)
        self.problems[agent_id] = problem
        return attempts if attempts < MAX_REGISTRATIONS else 0


def litellm_agent(card: Mapping[str, Any]) -> dict[str, Any]:
    """The body with which LiteLLM registers an agent."""
    capabilities = card["capabilities"]
    return {
        "agent_name": card["name"].lower().replace(" ", "-"),
        "agent_card_params": {
            "protocolVersion": card["protocol_version"],
            **{field: card[field] for field in ("name", "description", "url", "version")},
            "defaultInputModes": card["default_input_modes"],
            "defaultOutputModes": card["default_output_modes"],
            "capabilities": {
                "streaming": capabilities["streaming"],
                "pushNotifications": capabilities["push_notifications"],
                "stateTransitionHistory": capabilities["state_transition"],
            },
            "skills": [
                {field: skill[field] for field in ("id", "name", "description", "tags", "examples")}
                for skill in card["skills"]
            ],
        },
    }


async def _registered(server: JsonServer, body: Mapping[str, Any]) -> str | None:
    """Registers an agent and makes it public; returns why that failed, or None."""

    async def ask(method: str, path: str, content: Any = None) -> Any:
        answer = await server.send(method, path, content=content)
        if answer.status not in range(200, 300):
            raise UnusableAnswerError(f"it answered {method} {path} with HTTP {answer.status}")
        return await asyncio.to_thread(answer.decoded)

    try:
        listed = await ask("GET", "/v1/agents")
        same = [each for each in listed if isinstance(each, dict) and each.get("agent_name") == body["agent_name"]]
        known = _id_of(same[0]) if same else None
        if known is None:
            known = _id_of(await ask("POST", "/v1/agents", body))
        else:
            await ask("PUT", f"/v1/agents/{quote(known, safe='')}", body)
        if known is None:
            return "its answer to POST /v1/agents has no agent_id"
        await ask("POST", f"/v1/agents/{quote(known, safe='')}/make_public", {})
    except UnusableAnswerError as error:
        return str(error)
    except TypeError:
        return "its answer to GET /v1/agents is not a list"
    return None


def _id_of(answer: Any) -> str | None:
    agent_id = answer.get("agent_id") if isinstance(answer, dict) else None
    return agent_id if isinstance(agent_id, str) and agent_id not in {"", ".", ".."} else None
