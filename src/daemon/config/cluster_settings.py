"""The settings of a daemon that shares its database with others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from ...protocol.daemon_address import is_wildcard
from .model_checks import setting_error

_WHY: Final = {
    "workers": "several processes share a PostgreSQL database",
    "results_bucket": "a daemon without it keeps its results in the state directory",
}


def check_cluster(
    secret: SecretStr | None,
    file: Path | None,
    *,
    host: str,
    peer_host: str | None,
    needs_store: Mapping[str, bool],
    has_store: bool,
) -> None:
    """Checks the settings that ``store`` needs, and those that need it.

    Raises:
        PydanticCustomError: one is missing.
    """
    for name, needs in needs_store.items():
        if needs and not has_store:
            raise setting_error(name, f"needs store: {_WHY[name]}")
    if not has_store:
        return
    if (secret is None) == (file is None):
        wrong = "needs" if secret is None else "needs only one of"
        raise setting_error("store", f"{wrong} cluster_secret or cluster_secret_file, the same on each node")
    if peer_host is None and is_wildcard(host):
        raise setting_error("store", f"needs peer_host, by which the other nodes reach this one, if host is {host}")
