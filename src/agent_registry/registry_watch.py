"""Polls a registry of agents in the background, and stores its answers."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from ..sources import MAX_REQUESTS_PER_SERVER
from .kept_agents import KeptAgents
from .registered_agents import RegisteredAgent, RegisteredAgentState, after_fetch, state_of
from .registry_client import FailedFetch, FetchOutcome, RegistryClient
from .registry_settings import RegistrySettings
from .url_registration import UrlRegistration, own_url_of

FIRST_RETRY_S: Final = 1.0
MAX_RETRY_S: Final = 60.0
"""The maximum delay before a failing registry is asked again, or ``poll_s`` if that is longer."""
JITTER: Final = 0.2
"""Delays vary by up to this share in each direction, so that daemons that started together do not poll together."""

_log = structlog.get_logger("toold.registry")


def poll_delay_s(failures: int, poll_s: float, fraction: float) -> float:
    """The time until the next poll after ``failures`` consecutive failed polls; ``fraction`` is random, 0 to 1."""
    delay = poll_s
    if failures:
        delay = min(FIRST_RETRY_S * 2 ** min(failures - 1, 16), max(poll_s, MAX_RETRY_S))
    return delay * (1 - JITTER + 2 * JITTER * fraction)


class RegistryWatch:
    """The agents of ``[registry]``. Until the first poll, they have the definitions from the disk.

    ``on_change`` is called in the event loop after each poll; it decides which agents to host, and calls ``settle``.
    """

    def __init__(self, settings: RegistrySettings | None, kept: Path, on_change: Callable[[], None]) -> None:
        self._kept = KeptAgents(kept)
        self._on_change = on_change
        self._wake = asyncio.Event()
        self._polled = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()
        self._disk_problem: str | None = None
        self._use(settings)

    def _use(self, settings: RegistrySettings | None) -> None:
        self._settings = settings
        self._client = None if settings is None else RegistryClient(settings)
        self.known: Sequence[RegisteredAgent] = () if settings is None else self._kept.load(settings)
        # By id: the record on the disk, and the last logged problem.
        self._saved: dict[str, bytes | None] = {
            agent.reference.id: agent.good.content for agent in self.known if agent.good
        }
        self._reported: dict[str, str | None] = {}
        self._url = UrlRegistration()
        self._polled.clear()

    @property
    def settings(self) -> RegistrySettings | None:
        """The settings in use."""
        return self._settings

    @property
    def states(self) -> list[RegisteredAgentState]:
        """The state of each agent, in configured order."""
        return [state_of(agent) for agent in self.known]

    @property
    def problems(self) -> list[str]:
        """One sentence for each agent whose current definition is not hosted, or whose URL the registry lacks."""
        disk = [] if self._disk_problem is None else [self._disk_problem]
        return [*(problem for agent in self.known if (problem := agent.problem)), *self._url.problems.values(), *disk]

    def settle(self, planned: Sequence[RegisteredAgent]) -> None:
        """Record which definitions are hosted."""
        self.known = tuple(planned)
        for agent in planned:
            reported = self._reported.get(agent.reference.id)
            if agent.problem is not None and agent.problem != reported:
                _log.warning("agent of the registry has a problem", problem=agent.problem)
            elif agent.problem is None and reported is not None:
                _log.info("agent is hosted with the registry's definition", agent=agent.reference.id)
            self._reported[agent.reference.id] = agent.problem

    def apply(self, settings: RegistrySettings | None) -> None:
        """Use new settings. Needs a running event loop. Reads the stored agents from the disk."""
        if settings == self._settings:
            return
        if self._client is not None:
            closing = asyncio.create_task(self._client.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        self._use(settings)
        self._on_change()
        self._wake.set()

    def refresh(self) -> None:
        """Poll now, and retry the registration of URLs after it was given up."""
        self._url.attempts.clear()
        self._wake.set()

    async def loaded(self) -> None:
        """Wait until each agent is hosted, or the registry has been asked."""
        if self._settings is not None and not all(agent.hosted for agent in self.known):
            await self._polled.wait()

    async def run(self) -> None:
        """Poll until cancelled."""
        failures = 0
        while True:
            self._wake.clear()
            settings, client = self._settings, self._client
            if settings is None or client is None:
                await self._wake.wait()
                continue
            try:
                has_failed = await self._poll(settings, client)
            except Exception:  # noqa: BLE001 - a bug must not end the polls
                _log.exception("the registry could not be polled")
                has_failed = True
            if settings is not self._settings:
                failures = 0
                continue
            self._polled.set()
            failures = failures + 1 if has_failed else 0
            delay_s = poll_delay_s(failures, settings.poll_s, random.random())  # noqa: S311 - no secret
            with suppress(TimeoutError):
                async with asyncio.timeout(delay_s):
                    await self._wake.wait()

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _poll(self, settings: RegistrySettings, client: RegistryClient) -> bool:
        """Ask for all agents; returns whether the registry has failed for one of them."""
        outcomes = await fetch_all(self.known, client)
        if settings is not self._settings:  # other settings were applied meanwhile
            return False
        # In a thread, because many long definitions take seconds to validate.
        fetched = await asyncio.to_thread(_all_after_fetch, self.known, outcomes, settings)
        if settings is not self._settings:
            return False
        self.known = fetched
        self._on_change()
        await self._save(settings)
        url_failed = await self._register_urls(settings, client)
        return url_failed or any(isinstance(outcome, FailedFetch) for outcome in outcomes.values())

    async def _save(self, settings: RegistrySettings) -> None:
        problem = None
        for agent in self.known:
            content = agent.good.content if agent.good else None
            if content is self._saved.get(agent.reference.id):
                continue
            try:
                await asyncio.to_thread(self._kept.keep, agent, settings)
            except OSError as error:
                problem = f"the agents of the registry cannot be stored on the disk ({error.strerror})"
                continue
            self._saved[agent.reference.id] = content
        if problem is not None and problem != self._disk_problem:
            _log.warning("a start without the registry would lack agents", reason=problem)
        self._disk_problem = problem

    async def _register_urls(self, settings: RegistrySettings, client: RegistryClient) -> bool:
        """Send the URLs of agents to the registry, if it does not know them; returns whether to try again soon."""
        failed = False
        for agent in self.known:
            url = own_url_of(agent, settings)
            if url is None or not self._url.wanted(agent, url):
                continue
            reason = await client.set_url(agent.reference.id, url)
            if settings is not self._settings:
                return False
            failed = not self._url.ended(agent, reason) or failed
            if reason is None:
                self.known = tuple(
                    replace(each, registered_url=url) if each.reference == agent.reference else each
                    for each in self.known
                )
        return failed


def _all_after_fetch(
    known: Sequence[RegisteredAgent], outcomes: Mapping[str, FetchOutcome], settings: RegistrySettings
) -> tuple[RegisteredAgent, ...]:
    now = time.time()
    return tuple(after_fetch(agent, outcomes[agent.reference.id], settings, now) for agent in known)


async def fetch_all(known: Sequence[RegisteredAgent], client: RegistryClient) -> dict[str, FetchOutcome]:
    """The outcomes by id. If all requests of a batch fail, the rest are not sent, so that a hanging registry costs one
    timeout instead of one per agent. The order is random, so that the next poll begins with other agents.
    """
    outcomes: dict[str, FetchOutcome] = {}
    waiting = random.sample(known, len(known))
    while waiting:
        batch, waiting = waiting[:MAX_REQUESTS_PER_SERVER], waiting[MAX_REQUESTS_PER_SERVER:]
        answers = await asyncio.gather(*(client.fetch(agent.reference.id, agent.etag) for agent in batch))
        outcomes |= {agent.reference.id: answer for agent, answer in zip(batch, answers, strict=True)}
        if all(isinstance(answer, FailedFetch) for answer in answers):
            return {**dict.fromkeys((agent.reference.id for agent in waiting), answers[0]), **outcomes}
    return outcomes
