"""Documents made of their operations, read as a source reads them."""

from collections.abc import Callable
from typing import Any

import pytest
from toold.sources.openapi.api_operation import ApiOperation
from toold.sources.openapi.api_reader import ApiDescription, read_api

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
