"""Checks whether secrets can be read. Does not show them."""

import os
from collections.abc import Iterable, Mapping
from typing import Final

from ..tools import SecretLocation, SecretUnavailableError

DAEMON_ENVIRONMENT: Final = "the daemon's environment"
COMMAND_ENVIRONMENT: Final = "this command's environment, which is not the daemon's"


def unavailable_secrets(
    secrets: Iterable[SecretLocation], *, environment: str = DAEMON_ENVIRONMENT, env: Mapping[str, str] = os.environ
) -> list[str]:
    """Returns one clause per secret that cannot be read now, such as ``the variable CRM_TOKEN is not set in …``.

    ``env`` are the variables of a process; ``environment`` names this process in messages.
    """
    problems = []
    for secret in secrets:
        if secret.env is not None and not env.get(secret.env):
            problems.append(f"the variable {secret.env} is not set in {environment}")
            continue
        try:
            secret.read_header_value(env)
        except SecretUnavailableError as error:
            problems.append(str(error))
    return problems
