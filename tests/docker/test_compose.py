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
CLUSTER: dict[str, Any] = yaml.safe_load((DOCKER / "cluster/compose.yaml").read_text("utf-8"))


def test_what_is_mounted_and_built_exists() -> None:
    """Every file of the checkout that a service names is where it says."""
    for compose, directory, count in ((COMPOSE, DOCKER, 3), (CLUSTER, DOCKER / "cluster", 4)):
        mounts = [mount for service in compose["services"].values() for mount in service.get("volumes", ())]
        paths = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
        assert len(paths) == count
        assert [path for path in paths if not (directory / path).exists()] == []
        builds = [service["build"] for service in compose["services"].values() if "build" in service]
        assert builds
        assert all((directory / build["context"] / build["dockerfile"]).is_file() for build in builds)


def test_every_third_party_image_has_a_version() -> None:
    """None is ``latest``, so that tomorrow's start is today's."""
    services = [*COMPOSE["services"].values(), *CLUSTER["services"].values()]
    images = [service["image"] for service in services if "build" not in service]
    assert images
    assert all(re.search(r":v?\d+", image) for image in images)


def test_every_secret_of_a_service_is_declared_and_created(tmp_path: Path) -> None:
    """make_secrets.py makes just those that compose.yaml names; what is there stays as it is."""
    needed: set[str] = set()
    for compose, directory in ((COMPOSE, "secrets"), (CLUSTER, "../secrets")):
        declared = {name: entry["file"] for name, entry in compose["secrets"].items()}
        taken = {name for service in compose["services"].values() for name in service.get("secrets", ())}
        assert taken == set(declared)
        assert all(path == f"{directory}/{name}" for name, path in declared.items())
        needed |= taken
    assert set(make(tmp_path)) == needed
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
    services = [*COMPOSE["services"].values(), *CLUSTER["services"].values()]
    environment = [service.get("environment", {}) for service in services]
    assert not re.search(r'"[A-Z_]*(PASSWORD|TOKEN|KEY|SECRET)": "(?!@?/run/secrets/)', json.dumps(environment))


def test_each_node_has_a_name_by_which_the_others_reach_it() -> None:
    """Nodes need different names; the name of a service is the host's name in its network."""
    nodes = {name: service["environment"] for name, service in CLUSTER["services"].items() if name.startswith("node")}
    assert len(nodes) == 2
    assert all((env["TOOLD_NODE_NAME"], env["TOOLD_PEER_HOST"]) == (name, name) for name, env in nodes.items())
    balancer = (DOCKER / "cluster/balancer.conf").read_text("utf-8")
    for name in nodes:
        assert f"server {name}:8079" in balancer
        assert f"server {name}:8080" in balancer
