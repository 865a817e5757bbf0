"""Documents made of their operations, read as a source reads them, and callers of their API."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from toold.sources import read_sources
from toold.sources.address_policy import AddressPolicy
from toold.sources.checked_network import CheckedNetwork
from toold.sources.openapi.api_caller import ApiCaller
from toold.sources.openapi.api_operation import ApiOperation
from toold.sources.openapi.api_reader import ApiDescription, read_api
from toold.sources.source_settings import OpenApiSettings

from .api_secret import SECRET

URI = "https://crm.example/docs/api.json"

ReadPaths = Callable[..., ApiDescription]
ReadOne = Callable[..., ApiOperation]


@pytest.fixture(scope="session")
def read_paths() -> ReadPaths:
    """A function that reads a document with these paths and other parts."""

    def read(
        paths: Any, *, base_url: str | None = None, secret_at: Any = None, selection: Any = None, **parts: Any
    ) -> ApiDescription:
        document = {"openapi": "3.0.3", "servers": [{"url": "https://crm.example/v1"}], "paths": paths} | parts
        return read_api(
            {URI: document},
            URI,
            prefix="crm",
            absent={},
            base_url=base_url,
            secret_at=secret_at,
            selection=selection,
        )

    return read


@pytest.fixture(scope="session")
def read_one(read_paths: ReadPaths) -> ReadOne:
    """A function that reads one operation, which must be valid."""

    def read(operation: dict[str, Any], *, method: str = "post", path: str = "/things", **parts: Any) -> ApiOperation:
        api = read_paths({path: {method: {"operationId": "op", **operation}}}, **parts)
        assert len(api.operations) == 1, [str(note) for note in api.notes]
        return api.operations[0]

    return read


@pytest.fixture
async def caller_with(api: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., ApiCaller]]:
    """A function that creates a caller for the source ``crm``; private addresses are allowed, and its secret is set."""
    monkeypatch.setenv("CRM_TOKEN", SECRET)
    networks = []

    def make(**fields: Any) -> ApiCaller:
        table = {"type": "openapi", "spec": "/crm.json", "allow_private": True, **fields}
        settings = read_sources({"crm": table})["crm"]
        assert isinstance(settings, OpenApiSettings)
        networks.append(CheckedNetwork(AddressPolicy(settings.allow_private)))
        return ApiCaller("crm", settings, networks[-1])

    yield make
    for network in networks:
        await network.close()


@pytest.fixture
def operation(api: Any, read_paths: Any) -> Callable[..., ApiOperation]:
    """A function that returns the operation of a method at ``/thing``."""

    def make(method: str = "get", **fields: Any) -> ApiOperation:
        paths = {"/thing": {method: {"operationId": "op", **fields}}}
        made: ApiOperation = read_paths(paths, base_url=api.url).operations[0]
        return made

    return make
