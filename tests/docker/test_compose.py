"""The services, files and secrets of compose.yaml."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import jwt
import yaml
from make_secrets import make

DOCKER = Path(__file__).parents[2] / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text("utf-8"))


def test_what_is_mounted_and_built_exists() -> None:
    """Every file of the checkout that a service names is where it says."""
    mounts = [mount for service in COMPOSE["services"].values() for mount in service.get("volumes", ())]
    paths = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    assert len(paths) == 3
    assert [path for path in paths if not (DOCKER / path).exists()] == []
    build = COMPOSE["services"]["toold"]["build"]
    assert (DOCKER / build["context"] / build["dockerfile"]).is_file()


def test_every_third_party_image_has_a_version() -> None:
    """None is ``latest``, so that tomorrow's start is today's."""
    images = [service["image"] for service in COMPOSE["services"].values() if "build" not in service]
    assert images
    assert all(re.search(r":v?\d+", image) for image in images)


def test_every_secret_of_a_service_is_declared_and_created(tmp_path: Path) -> None:
    """make_secrets.py makes just those that compose.yaml names; what is there stays as it is."""
    declared = {name: entry["file"] for name, entry in COMPOSE["secrets"].items()}
    taken = {name for service in COMPOSE["services"].values() for name in service.get("secrets", ())}
    assert taken == set(declared)
    assert sorted(make(tmp_path)) == sorted(declared)
    assert all(path == f"secrets/{name}" for name, path in declared.items())
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    (tmp_path / "pages_password").unlink()
    assert make(tmp_path) == ["pages_password"]
    after = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {"pages_password"}


def test_the_directory_of_secrets_is_its_owners(tmp_path: Path) -> None:
    """The containers read the files as other users; other users of the machine cannot enter the directory."""
    make(tmp_path / "secrets")
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700


def test_postgrest_accepts_the_service_roles_key(tmp_path: Path) -> None:
    """It is signed by the secret that PostgREST checks with, and names the role."""
    make(tmp_path)
    key, secret = ((tmp_path / name).read_text() for name in ("service_role_key", "jwt_secret"))
    assert jwt.decode(key, secret, algorithms=["HS256"])["role"] == "service_role"
    assert f":{(tmp_path / 'authenticator_password').read_text()}@" in (tmp_path / "postgrest_uri").read_text()


def test_no_secret_is_in_an_image() -> None:
    """The build context excludes the secrets, and no service has one in its environment."""
    assert "docker/secrets" in (DOCKER.parent / ".dockerignore").read_text().splitlines()
    environment = [service.get("environment", {}) for service in COMPOSE["services"].values()]
    assert not re.search(r'"[A-Z_]*(PASSWORD|TOKEN|KEY|SECRET)": "(?!@?/run/secrets/)', json.dumps(environment))
