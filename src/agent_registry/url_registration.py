"""Decides which agents' URLs are sent to the registry."""

from typing import Final

import structlog

from .registered_agents import RegisteredAgent
from .registry_settings import RegistrySettings

MAX_URL_ATTEMPTS: Final = 10
"""The maximum number of attempts to send the URL of an agent, one per poll: about four minutes with the delays of
failed polls.
"""

_log = structlog.get_logger("toold.registry")


class UrlRegistration:
    """The URLs that still have to be sent to the registry, and their attempts."""

    def __init__(self) -> None:
        self.attempts: dict[str, int] = {}
        self.problems: dict[str, str] = {}
        self._done: set[str] = set()

    def wanted(self, agent: RegisteredAgent, url: str) -> bool:
        """Whether to send the URL now: once after the start, and again if the registry has lost it. It is not sent if
        the registry has another URL; otherwise two daemons with the same agent would overwrite each other's URL
        forever.
        """
        agent_id = agent.reference.id
        if agent.answered_at is None or agent.failure is not None:  # would also fail, and use up the attempts
            return False
        if self.attempts.get(agent_id, 0) >= MAX_URL_ATTEMPTS:
            return False
        if agent.registered_url == url:
            self._done.add(agent_id)
            self.problems.pop(agent_id, None)
        return agent.registered_url != url and (agent_id not in self._done or not agent.registered_url)

    def ended(self, agent: RegisteredAgent, reason: str | None) -> bool:
        """Record an attempt; ``reason`` is None if it succeeded. Returns whether it succeeded or was given up."""
        agent_id = agent.reference.id
        if reason is None:
            _log.info("registry has the URL of an agent", agent=agent_id)
            self._done.add(agent_id)
            self.attempts.pop(agent_id, None)
            self.problems.pop(agent_id, None)
            return True
        attempts = self.attempts[agent_id] = self.attempts.get(agent_id, 0) + 1
        given_up = attempts >= MAX_URL_ATTEMPTS
        if agent_id not in self.problems or given_up:
            _log.warning("registry does not accept the URL of an agent", agent=agent_id, reason=reason, final=given_up)
        self.problems[agent_id] = f"agent {agent_id} of the registry: its URL was not accepted: {reason}"
        return given_up


def own_url_of(agent: RegisteredAgent, settings: RegistrySettings) -> str | None:
    """The URL that the registry should have for a hosted agent; None without ``own_url``."""
    if settings.own_url is None or not agent.hosted or agent.good is None:
        return None
    return f"{settings.own_url.rstrip('/')}/agents/{agent.good.agent.name}/"
