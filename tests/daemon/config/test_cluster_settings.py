"""The settings of a daemon that shares its database with others."""

from pathlib import Path
from typing import Any

import pytest
from toold.daemon.cluster.cluster_node import peer_secret
from toold.daemon.config.setting_sources import SettingsError

URL = "postgresql://toold:secret-password@db.example:5432/toold"
SECRET = "a-secret-of-all-nodes"


def test_a_shared_database_needs_a_secret(settings_with: Any) -> None:
    """One of the two settings, and not both."""
    assert settings_with(TOOLD_STORE=URL, TOOLD_CLUSTER_SECRET=SECRET).lease_s == 10
    for both in ({}, {"TOOLD_CLUSTER_SECRET": SECRET, "TOOLD_CLUSTER_SECRET_FILE": "secret"}):
        with pytest.raises(SettingsError, match="cluster_secret_file, the same on each node"):
            settings_with(TOOLD_STORE=URL, **both)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104
def test_a_node_that_listens_everywhere_names_its_address(settings_with: Any, host: str) -> None:
    """The other nodes cannot connect to a wildcard."""
    given = {"TOOLD_STORE": URL, "TOOLD_CLUSTER_SECRET": SECRET, "TOOLD_HOST": host}
    with pytest.raises(SettingsError, match="needs peer_host"):
        settings_with(**given)
    assert settings_with(**given, TOOLD_PEER_HOST="10.0.0.5").peer_host == "10.0.0.5"


@pytest.mark.parametrize(
    ("setting", "value", "allowed"),
    [
        ("STORE", "mysql://db.example/toold", "URL of a PostgreSQL database"),
        ("STORE", "toold.db", "URL of a PostgreSQL database"),
        ("NODE_NAME", "a b", "letters, digits"),
        ("LEASE_S", "0.5", "1"),
        ("LEASE_S", "301", "300"),
        ("CLUSTER_SECRET", "short", "16 printable"),
        ("WORKERS", "0", "1 or more"),
        ("WORKERS", "65", "64"),
        ("RESULTS_BUCKET", "https://bucket", "s3://bucket/prefix"),
        ("RESULTS_BUCKET", "s3://", "s3://bucket/prefix"),
        ("RESULTS_BUCKET", "s3://key:secret@bucket", "no keys"),
    ],
)
def test_wrong_values_are_refused(settings_with: Any, setting: str, value: str, allowed: str) -> None:
    """The message says what is allowed."""
    given = {"TOOLD_STORE": URL, "TOOLD_CLUSTER_SECRET": SECRET, f"TOOLD_{setting}": value}
    with pytest.raises(SettingsError, match=allowed):
        settings_with(**given)


def test_the_password_of_the_database_is_not_shown(settings_with: Any) -> None:
    """Settings can be printed."""
    settings = settings_with(TOOLD_STORE=URL, TOOLD_CLUSTER_SECRET=SECRET)
    assert "secret-password" not in repr(settings)
    assert SECRET not in repr(settings)


def test_the_secret_is_read_from_a_file(settings_with: Any, tmp_path: Path) -> None:
    """One line; a file that is missing or has something else is refused by its path."""
    file = tmp_path / "secret"
    settings = settings_with(TOOLD_STORE=URL, TOOLD_CLUSTER_SECRET_FILE=str(file))
    with pytest.raises(SettingsError, match="cannot be read"):
        peer_secret(settings)
    file.write_text("short\n")
    with pytest.raises(SettingsError, match="must have one line of 16"):
        peer_secret(settings)
    file.write_text(f"{SECRET}\n")
    assert peer_secret(settings).get_secret_value() == SECRET


@pytest.mark.parametrize(("setting", "value"), [("WORKERS", "2"), ("RESULTS_BUCKET", "s3://bucket")])
def test_what_needs_the_shared_database_is_refused_without_it(settings_with: Any, setting: str, value: str) -> None:
    """The message names both settings."""
    with pytest.raises(SettingsError, match=f"{setting.lower()}.*needs store"):
        settings_with(**{f"TOOLD_{setting}": value})
