"""The doctor's check of the registry of agents: whether it has valid definitions of the agents."""

import time
from collections.abc import Mapping

from ...agent_registry import RegisteredAgent, RegistryClient, after_fetch
from ...sources import COMMAND_ENVIRONMENT, unavailable_secrets
from ..config.settings import Settings
from .check_result import CheckResult


async def agent_registry(settings: Settings, env: Mapping[str, str]) -> list[CheckResult]:
    """One check per problem, or one check for all agents. Asks the registry for each agent, until a request fails. No
    check if no registry is configured."""
    registry = settings.registry
    if registry is None or registry.url is None:
        return []
    keys = () if registry.key is None else (registry.key.secret,)
    if missing := unavailable_secrets(keys, environment=COMMAND_ENVIRONMENT, env=env):
        remedy = "set it where the daemon starts, or change key in [registry]"
        return [CheckResult("registry", "warn", problem, remedy) for problem in missing]
    client, results = RegistryClient(registry), list[CheckResult]()
    for reference in registry.agents:
        known = after_fetch(RegisteredAgent(reference), await client.fetch(reference.id, None), registry, time.time())
        place = f"{registry.base}, agent {reference.id}"
        if known.failure is not None:
            remedy = "check [registry] and the registry; the daemon hosts the last good definition"
            results.append(CheckResult("registry", "warn", f"{place}: {known.failure}", remedy))
            if known.answered_at is None:
                break
        elif known.invalid is not None:
            results.append(CheckResult("registry", "warn", f"{place}: {known.invalid}", "correct it in the registry"))
    await client.close()
    return results or [CheckResult("registry", "ok", f"{registry} with valid definitions")]
