"""Which agents have a URL that the registry does not know yet."""

from typing import Final

import structlog

from .registered_agents import RegisteredAgent
from .registry_settings import RegistrySettings

MAX_URL_ATTEMPTS: Final = 10
"""Attempts to send the URL of an agent, in as many polls: about four minutes with the delays of polls that fail."""

_log = structlog.get_logger("toold.registry")


class UrlRegistration:
    """Which URLs still have to be sent to the registry, and how that went."""

    def __init__(self) -> None:
        self.attempts: dict[str, int] = {}
        self.problems: dict[str, str] = {}
        self._done: set[str] = set()

    def wanted(self, agent: RegisteredAgent, url: str) -> bool:
        """Whether to send the URL now: once after the start, and again if the registry has lost it. It is not sent
        if the registry has another one, or two daemons with the same agent would overwrite each other's URL forever."""
        agent_id = agent.reference.id
        if agent.answered_at is None or agent.failure is not None:  # it would fail, too, and use up the attempts
            return False
        if self.attempts.get(agent_id, 0) >= MAX_URL_ATTEMPTS:
            return False
        if agent.registered_url == url:
            self._done.add(agent_id)
            self.problems.pop(agent_id, None)
        return agent.registered_url != url and (agent_id not in self._done or not agent.registered_url)

    def ended(self, agent: RegisteredAgent, reason: str | None) -> bool:
        """Note an attempt, which failed for a reason; returns whether it is settled: it succeeded or is given up."""
        agent_id = agent.reference.id
        if reason is None:
            _log.info("the registry has the URL of an agent", agent=agent_id)
            self._done.add(agent_id)
            self.attempts.pop(agent_id, None)
            self.problems.pop(agent_id, None)
            return True
        attempts = self.attempts[agent_id] = self.attempts.get(agent_id, 0) + 1
        given_up = attempts >= MAX_URL_ATTEMPTS
        if agent_id not in self.problems or given_up:
            _log.warning(
                "the registry does not take the URL of an agent", agent=agent_id, reason=reason, final=given_up
            )
        self.problems[agent_id] = f"agent {agent_id} of the registry: its URL was not taken: {reason}"
        return given_up


def own_url_of(agent: RegisteredAgent, settings: RegistrySettings) -> str | None:
    """The URL that the registry should have for a hosted agent; None without ``own_url``."""
    if settings.own_url is None or not agent.hosted or agent.good is None:
        return None
    return f"{settings.own_url.rstrip('/')}/agents/{agent.good.agent.name}/"
