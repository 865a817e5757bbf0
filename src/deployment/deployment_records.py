"""The records of deployments, one file each, so that a start finds them and a removal knows what was created.
Blocks.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from .deploy_request import MAX_NAME_CHARS, DeployPlan

DEPLOYMENTS_DIRECTORY: Final = "deployments"
"""The name of the directory in the state directory."""
MAX_DEPLOYMENTS: Final = 200
"""The maximum number of deployments, the same as in the benchmark of hosted agents."""
_NAME: Final = re.compile(rf"[a-z][a-z0-9-]{{0,{MAX_NAME_CHARS - 1}}}")

DeploymentState = Literal["deploying", "ready", "incomplete"]


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """One deployed agent, or one that is being deployed."""

    plan: DeployPlan
    principal: str
    job_id: str
    created_at: float
    state: DeploymentState = "deploying"
    """``incomplete``: the job failed, and not everything could be removed."""
    url: str | None = None
    agent: dict[str, Any] | None = None
    """The definition of an agent that this daemon hosts."""
    hosted: bool = False
    """Whether this daemon should host it."""

    @property
    def name(self) -> str:
        return self.plan.service_name


class DeploymentRecords:
    """All deployments. One process at a time uses the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, Deployment] = {}
        self.unreadable: list[str] = []
        """Files that are not records of deployments."""
        self._load()

    def __repr__(self) -> str:
        return f"<DeploymentRecords {len(self._known)}>"

    @property
    def all(self) -> Mapping[str, Deployment]:
        """The deployments by the service's name."""
        return self._known

    def put(self, deployment: Deployment) -> None:
        """Store a deployment; returns once it is on the disk.

        Raises:
            OSError: the file cannot be written; the earlier record stays.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(deployment.name)
        unfinished = path.with_suffix(".new")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(msgspec.json.encode(deployment))
            file.flush()
            os.fsync(descriptor)
        unfinished.replace(path)
        self._sync()
        self._known = {**self._known, deployment.name: deployment}

    def remove(self, name: str) -> None:
        """Delete the record of a deployment.

        Raises:
            OSError: the file cannot be deleted.
        """
        self._path(name).unlink(missing_ok=True)
        self._sync()
        self._known = {other: each for other, each in self._known.items() if other != name}

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a service")
        return self._directory / f"{name}.json"

    def _sync(self) -> None:
        with suppress(FileNotFoundError):
            descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def _load(self) -> None:
        for path in sorted(self._directory.glob("*.json")):
            try:
                deployment = msgspec.json.decode(path.read_bytes(), type=Deployment)
            except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self.unreadable.append(path.name)
                continue
            if deployment.name == path.stem:
                self._known[deployment.name] = deployment
            else:
                self.unreadable.append(path.name)
