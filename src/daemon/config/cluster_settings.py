"""The settings of a daemon that shares its database with others."""

from pathlib import Path

from pydantic import SecretStr

from ...protocol.daemon_address import is_wildcard
from .model_checks import setting_error


def check_cluster(secret: SecretStr | None, file: Path | None, *, host: str, peer_host: str | None) -> None:
    """Checks the settings that ``store`` needs.

    Raises:
        PydanticCustomError: one is missing.
    """
    if (secret is None) == (file is None):
        wrong = "needs" if secret is None else "needs only one of"
        raise setting_error("store", f"{wrong} cluster_secret or cluster_secret_file, the same on each node")
    if peer_host is None and is_wildcard(host):
        raise setting_error("store", f"needs peer_host, by which the other nodes reach this one, if host is {host}")
